"""What long computations show, and which process shows it."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

_BAR_WIDTH = 10  # characters, also where a terminal is narrow


def progress_bar(*, visible: bool = True) -> Progress:
    """A progress bar on standard error with count, elapsed and remaining time. It is hidden if that is not a terminal.

    Each task needs a field `note`, a text that is shown at the end, as far as there is room for it.
    """
    console = Console(stderr=True)
    return Progress(
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
    )


def is_main_process() -> bool:
    """Whether this process prints and writes results: the first of those that share a training or an evaluation."""
    from accelerate import PartialState

    return PartialState().is_main_process
