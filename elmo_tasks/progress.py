"""The bar that every long piece of work draws."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress_bar(*, visible: bool = True) -> Progress:
    """Bars with count, elapsed time and time to go on the error stream; nothing where that is no terminal.

    A task's field `note`, if it has one, is shown behind the count.
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
