"""Signals that end the process wait until what is being written or computed is whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DeferredSignals:
    """Within the block, signals that end the process are handled as before it, but wait while `is_busy`.

    In another thread than the main one, which receives all signals, the block changes nothing.

    Arguments:
        insistent: whether a signal that comes a second time does not wait.
    """

    def __init__(self, *, insistent: bool) -> None:
        self.is_busy = False
        self._insistent = insistent
        self._waiting: tuple[int, FrameType | None] | None = None
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> DeferredSignals:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if callable(handler := signal.getsignal(number)):
                    self._handlers[number] = handler
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._receive:  # a handler may have changed it, to end in peace
                signal.signal(number, handler)

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Within the block, signals wait. At its end the last one is handled, unless an error ends the block."""
        self.is_busy = True
        try:
            yield
        finally:
            self.is_busy = False
        if self._waiting:
            (number, frame), self._waiting = self._waiting, None
            self._handlers[number](number, frame)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        is_again = self._waiting is not None and self._waiting[0] == number
        if not self.is_busy or (is_again and self._insistent):
            self._handlers[number](number, frame)
        else:
            self._waiting = number, frame
