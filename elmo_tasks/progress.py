"""What is shown on standard error: logs, and how far long computations are."""

from __future__ import annotations

import contextlib
import datetime
import logging
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

LINE_SECONDS = 10.0  # between two lines of a log that say how far a computation is
_BAR_WIDTH = 10  # characters, also where a terminal is narrow
_shown: list[Progress] = []  # what runs now, and shows how far it is; the innermost comes last


def progress_bar(*, visible: bool = True) -> Progress:
    """A progress bar on standard error with count, elapsed and remaining time.

    If standard error is not a terminal, it is a line in the log every ten seconds. Each task needs a field `note`, a
    text that is shown at the end, as far as there is room for it.
    """
    console = Console(stderr=True)
    return _Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=_BAR_WIDTH, table_column=Column(min_width=_BAR_WIDTH)),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("to go:"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        console=console,
        disable=not visible or not console.is_terminal,
        transient=True,
        expand=True,
        logged=visible and not console.is_terminal,
    )


def counted_items(items: Iterable[_T], what: str, *, total: int | None = None, visible: bool = True) -> Generator[_T]:
    """The items, with a progress bar for those that have been taken. Those who may stop before the end close it."""
    with progress_bar(visible=visible) as bar:
        task = bar.add_task(what, total=total, note="")
        for item in items:
            yield item
            bar.advance(task)


class _Bar(Progress):
    """A progress bar that is logged where it cannot be drawn."""

    def __init__(self, *columns: ProgressColumn, logged: bool, **settings: object) -> None:
        super().__init__(*columns, **settings)  # type: ignore[arg-type]
        self._logged = logged
        self._ends = contextlib.ExitStack()
        self._firsts: dict[TaskID, tuple[float, float]] = {}  # seconds and what was done at the first line of each task

    def start(self) -> None:
        super().start()
        if self not in _shown:
            _shown.append(self)
            if self._logged:
                self._ends.enter_context(_every_ten_seconds(self._log))

    def stop(self) -> None:
        super().stop()
        if self in _shown:
            _shown.remove(self)
        self._ends.close()

    def _log(self, _: float) -> None:
        for task in self.tasks if _shown[-1:] == [self] else ():
            total = "" if task.total is None else f" of {task.total:,.0f}"
            note = f" ({task.fields['note']})" if task.fields["note"] else ""
            logger.info("%s: %s%s%s%s", task.description, f"{task.completed:,.0f}", total, note, self._times(task))

    def _times(self, task: Task) -> str:
        """The time so far and the time to go, which is estimated from all that was done since the first line.

        What rich estimates for its bar is wrong where results come in batches: it only looks at the last ones.
        """
        elapsed = task.elapsed or 0.0
        start, done_then = self._firsts.setdefault(task.id, (elapsed, task.completed))
        so_far = f", after {_duration(elapsed)}"
        if task.total is None or task.completed <= done_then:
            return so_far
        seconds = (elapsed - start) * (task.total - task.completed) / (task.completed - done_then)
        return f"{so_far}, to go: {_duration(seconds)}"


@contextlib.contextmanager
def at_work(what: str) -> Iterator[None]:
    """Within the block, a line every ten seconds says that the work goes on, unless a progress bar says so."""

    def log(seconds: float) -> None:
        if not _shown:
            logger.info("%s: at work for %s", what, _duration(seconds))

    with _every_ten_seconds(log):
        yield


@contextlib.contextmanager
def _every_ten_seconds(log: Callable[[float], None]) -> Iterator[None]:
    """Within the block, calls a function with the seconds since its beginning, in a thread."""
    is_over, start = threading.Event(), time.monotonic()

    def run() -> None:
        while not is_over.wait(LINE_SECONDS):
            log(time.monotonic() - start)

    thread = threading.Thread(target=run, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _duration(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))


def is_main_process() -> bool:
    """Whether this process prints and writes results: the first of those that share a training or an evaluation."""
    from accelerate import PartialState

    return PartialState().is_main_process


class _TerminalFormatter(logging.Formatter):
    """Only the message, after the level if it is a warning or worse."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"{record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


def set_up_logging(level: int) -> None:
    """Sends logs of `level` and above to standard error."""
    handler: logging.Handler
    if sys.stderr.isatty():
        handler = RichHandler(
            console=Console(stderr=True), show_level=False, show_path=level <= logging.DEBUG, log_time_format="%H:%M"
        )
        handler.setFormatter(_TerminalFormatter())
    else:  # one line per message, so that log files work with grep
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    package = logging.getLogger("elmo_tasks")
    package.handlers = [handler]
    package.setLevel(level)
