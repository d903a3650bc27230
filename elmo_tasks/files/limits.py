"""Bounds on what a file may unpack to, so that a small damaged or hostile file cannot fill the memory or the disk.

They are far above what real files need. `ELMO_TASKS_LIMITS=10` makes all of them ten times as large.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from typing import IO

from elmo_tasks.errors import ElmoTasksError

VARIABLE = "ELMO_TASKS_LIMITS"
ADVICE = f"if the file is as it should be, {VARIABLE}=10 in the environment allows ten times as much"

MAX_LINE_BYTES = 100_000_000  # the largest real line is all of SQuAD, 30 MB
MAX_JSON_BYTES = 16_000_000  # of a config and other settings
MAX_VOCABULARY_BYTES = 1_000_000_000
MAX_JSON_DEPTH = 200  # does not grow: Python's stack is the bound
_TEXT_FACTOR, _TEXT_BYTES = 100, 256_000_000  # text becomes 3 to 15 times smaller
_NUMBERS_FACTOR, _NUMBERS_BYTES = 20, 64_000_000  # trained weights hardly become smaller


def limit(size: int) -> int:
    """A bound times what the environment says; raises an `ElmoTasksError` if that is not a positive number."""
    text = os.environ.get(VARIABLE, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 < factor < math.inf:
        raise ElmoTasksError(f"{VARIABLE}: got {text!r}; expected a positive number, such as 10")
    return int(size * factor)


def unpacked_text(size: int) -> int:
    """The most bytes that a compressed text of `size` bytes may have."""
    return limit(_TEXT_BYTES + _TEXT_FACTOR * size)


def unpacked_numbers(size: int) -> int:
    """The most bytes that `size` bytes of compressed weights may have."""
    return limit(_NUMBERS_BYTES + _NUMBERS_FACTOR * size)


def bounded(
    stream: io.BufferedIOBase | IO[bytes], most: int, problem: Callable[[str], ElmoTasksError]
) -> io.BufferedReader:
    """A stream with the bytes of another one. If they are more than `most`, it raises what `problem` makes of that."""
    return io.BufferedReader(_Bounded(stream.read, most, problem), 1 << 20)


class _Bounded(io.RawIOBase):
    def __init__(self, read: Callable[[int], bytes], most: int, problem: Callable[[str], ElmoTasksError]) -> None:
        self._read, self._most, self._left, self._problem = read, most, most, problem

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._read(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise self._problem(f"unpacks to more than {self._most:,} bytes; {ADVICE}")
        buffer[: len(content)] = content
        return len(content)
