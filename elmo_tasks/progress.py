"""The progress bar for long computations."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress_bar(*, visible: bool = True) -> Progress:
    """A progress bar on standard error with count, elapsed and remaining time. It is hidden if that is not a terminal.

    Each task needs a field `note`, a text that is shown after the count.
    """
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("to go:"),
        TimeRemainingColumn(),
        console=console,
        disable=not visible or not console.is_terminal,
        transient=True,
    )
