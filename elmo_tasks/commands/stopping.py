"""Commands that end early, by Ctrl-C, SIGTERM, SIGHUP or a bad input: what they have written stays, and they say so."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from elmo_tasks.errors import DataError, IncompleteError, counted
from elmo_tasks.files.signals import DeferredSignals

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_RESUMED, _AGAIN = "the same command with --resume, and without --force, goes on", "the same command goes on"
_GOES_ON = {"train": _RESUMED, "pretrain": _RESUMED, "study": _AGAIN, "tune": _AGAIN}
_QUICK = ("dry_run", "list", "check_data", "estimate")  # options of these, with which there is nothing to go on with
# What the output of a command is, if a part of it is of no use.
_WHOLE = {
    **dict.fromkeys(("predict", "score"), "there was no result yet"),
    "embed": "a file of vectors is only written whole; --output DIR/ keeps the parts that are complete",
    "archive": "an archive is only written whole",
    "plot": "a plot is only written whole",
}
_WHOLE_REPORT = "its results are only written whole, at the end"
_OUTPUTS = ("output", "html", "predictions", "file", "copy")  # arguments that name files to write


class Stopped(BaseException):
    """A signal has ended a command, and files keep a part of its results.

    Arguments:
        ending: what the signal raised, `KeyboardInterrupt` or `SystemExit`.
        kept: what files have.
    """

    def __init__(self, ending: BaseException, kept: str) -> None:
        super().__init__(kept)
        self.ending = ending


def is_signal(error: BaseException) -> bool:
    """Whether an exception is what a signal raises that ends the process."""
    if isinstance(error, SystemExit):
        return isinstance(error.code, int) and error.code > 128
    return isinstance(error, KeyboardInterrupt)


def what_is_left(arguments: argparse.Namespace) -> str:
    """What a stopped command has written, and how to go on; empty if there is nothing to say."""
    if how := _GOES_ON.get(arguments.words[0]):
        return "" if any(getattr(arguments, name, False) for name in _QUICK) else how
    files = [path for name in _OUTPUTS if isinstance(path := getattr(arguments, name, None), str)]
    if not files:
        return ""
    if files[0].endswith("/") or Path(files[0]).is_dir():
        number = counted(len([*Path(files[0]).glob("*.parquet")]), "complete part")
        return f"{files[0]}: has {number}; the same command makes the others"
    return f"{', '.join(files)}: not written; {_WHOLE.get(arguments.words[0], _WHOLE_REPORT)}"


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Within the block, signals that end the process wait for its end, so that what it writes is whole."""
    with DeferredSignals(insistent=False) as signals, signals.busy():
        yield


class Results:
    """The results of a command, which it shows one by one, and keeps in files if it ends early.

    Arguments:
        files: those that it writes.

    Attributes:
        count: how many results have been shown.
        end: why there are no more than those, if the command has ended early.
    """

    def __init__(self, files: Sequence[str | None]) -> None:
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
            raise IncompleteError(f"{self.end}\n{written}")
        if self.end is not None:
            number = counted(self.count, noun)
            raise Stopped(self.end, f"{', '.join(self.files)}: has the first {number}, all of them complete")
        for path in self.files:
            logger.info("%s: %s", path, counted(self.count, noun))
