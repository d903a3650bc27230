"""Ctrl-C and other signals that end a process: what is being written or computed is made whole first."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, TypeVar

from elmo_tasks.errors import DISK_FULL_ERRORS, DataError, ElmoTasksError, IncompleteError, counted

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

BROKEN_PIPE, INTERRUPTED = 128 + 13, 128 + 2  # exit codes: 128 + the number of the signal
# Windows does not have SIGHUP.
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def is_signal(error: BaseException) -> bool:
    """Whether an exception is what a signal raises that ends the process."""
    if isinstance(error, SystemExit):
        return isinstance(error.code, int) and error.code > 128
    return isinstance(error, KeyboardInterrupt)


@contextlib.contextmanager
def ended_cleanly() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP end the process as SIGINT does: temporary files and locks are removed.

    A thread that finds a disk full prints no traceback: TensorBoard's thread hands its error to the main thread.
    """

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
        raise SystemExit(128 + number)

    def report(problem: threading.ExceptHookArgs) -> None:
        if not (isinstance(problem.exc_value, OSError) and problem.exc_value.errno in DISK_FULL_ERRORS):
            earlier_hook(problem)

    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            if number != signal.SIGINT and signal.getsignal(number) == signal.SIG_DFL:
                handlers[number] = signal.signal(number, end)
    earlier_hook, threading.excepthook = threading.excepthook, report
    try:
        yield
    finally:
        threading.excepthook = earlier_hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


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
            for number in _ENDING:
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


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Within the block, signals that end the process wait for its end, so that what it writes is whole."""
    with DeferredSignals(insistent=False) as signals, signals.busy():
        yield


class Stopped(BaseException):
    """A signal has ended a command, and files keep a part of its results.

    Arguments:
        ending: what the signal raised, `KeyboardInterrupt` or `SystemExit`.
        kept: what files have.
    """

    def __init__(self, ending: BaseException, kept: str) -> None:
        super().__init__(kept)
        self.ending = ending


class Results:
    """The results of a command, which it shows one by one, and keeps in files if it ends early.

    Arguments:
        files: those that it writes.
        advice: what to do about an input that is not usable, after others that were.

    Attributes:
        count: how many results have been shown.
        end: why there are no more than those, if the command has ended early.
    """

    def __init__(self, files: Sequence[str | None], advice: str = "") -> None:
        self.advice = advice and f"\n{advice}"
        self.files = [file for file in files if file]
        self.count = 0
        self.end: BaseException | None = None

    @property
    def note(self) -> str:
        """What a file says at its end, if there are more results than it has."""
        return "" if self.end is None else str(self.end) if isinstance(self.end, DataError) else "interrupted"

    def show(self, results: Iterable[_T], show: Callable[[_T], object], *, typed: bool = False) -> None:
        """Shows the results; what ends them early is kept for `report` if files have some, otherwise it is raised.

        Arguments:
            typed: whether a person types the inputs; then the error of a bad one is raised, and the next can be typed.
        """
        try:
            for result in results:
                with uninterrupted():
                    show(result)
                    self.count += 1
        except (KeyboardInterrupt, SystemExit, DataError) as error:
            if not self.files or not self.count or (typed and isinstance(error, DataError)):
                if self.count and self.advice and not typed and isinstance(error, DataError):
                    raise ElmoTasksError(f"{error}{self.advice}") from None
                raise
            self.end = error

    def report(self, noun: str) -> None:
        """Says how many results the files have, which are complete.

        Raises:
            IncompleteError: an input was not usable, and the files have the results of those before it.
            Stopped: a signal has ended the command.
        """
        written = f"{', '.join(self.files)}: only {counted(self.count, noun)}, of the inputs before it"
        if isinstance(self.end, DataError):
            raise IncompleteError(f"{self.end}\n{written}{self.advice}")
        if self.end is not None:
            number = counted(self.count, noun)
            raise Stopped(self.end, f"{', '.join(self.files)}: has the first {number}, all of them complete")
        for path in self.files:
            logger.info("%s: %s", path, counted(self.count, noun))
