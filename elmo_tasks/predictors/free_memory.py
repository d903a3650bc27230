"""Gives memory that is free but still held back to the operating system, so that long streams do not fill it."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

_TOKENS_BETWEEN = 1 << 17  # of all predictors of the process; more often, new pages would take two percent of the time
_tokens = 0


def release_memory_after(tokens: int) -> None:
    """Counts predicted tokens, and at times lets glibc give back the free parts of its heaps.

    Large tensors come and go among small objects that stay, such as cached words. The gaps between these do not fit the
    next tensors, and the heaps grow for hours. Other C libraries give memory back by themselves.
    """
    global _tokens
    _tokens += tokens
    if _tokens >= _TOKENS_BETWEEN:
        _tokens = 0
        release_memory()


def release_memory() -> None:
    """Gives the free parts of the heaps back at once."""
    if trim := _malloc_trim():
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        function: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # not glibc
        return None
    return function
