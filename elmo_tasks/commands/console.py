"""Results on standard output."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tasks.metrics.confusion import ConfusionTable, LabelScores

_MOST_CHARACTERS = 100_000  # of a line in a file or a pipe


@contextlib.contextmanager
def binary_output(path: str | None) -> Iterator[IO[bytes]]:
    """Opens a file for writing bytes, or standard output if the path is None. The file appears when it is complete."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from elmo_tasks.files.atomic import atomic_write

    with atomic_write(path) as stream:
        yield stream


@contextlib.contextmanager
def json_lines(path: str | None) -> Iterator[Callable[[Any], object]]:
    """Yields a function that writes a value as a line of JSON, to a file or to standard output."""
    from elmo_tasks.files.json_files import json_text

    with binary_output(path) as stream:

        def write(value: Any) -> None:
            stream.write(f"{json_text(value)}\n".encode())
            stream.flush()  # a program at the other end of a pipe may wait for it

        yield write


def print_json(value: Any) -> None:
    """Prints a value to standard output as indented JSON; see `json_text`. Without UTF-8, it is ASCII."""
    from elmo_tasks.files.json_files import json_text

    text = json_text(value, indent=2)
    has_all = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    print(text if has_all else json.dumps(json.loads(text), indent=2))


def print_metrics(metrics: Mapping[str, float], title: str) -> None:
    """Prints the metrics of an evaluation. Metrics of parts, such as `f1/PER` or `f1/muc`, get a table of their own."""
    parts: dict[str, dict[str, float]] = {}
    for name, value in metrics.items():
        metric, _, part = name.partition("/")
        parts.setdefault(part, {})[metric] = value
    overall = parts.pop("", {})
    print_table(title, ("metric", "value"), [[name, shown_number(value)] for name, value in overall.items()])
    if parts:
        columns = list(dict.fromkeys(metric for values in parts.values() for metric in values))
        rows = [[part, *(shown_number(values.get(name)) for name in columns)] for part, values in parts.items()]
        print_table(f"{title}, in detail", ("", *columns), rows)


def print_training_metrics(metrics: Mapping[str, Any]) -> None:
    """Prints the results of a training: on validation data (best epoch) and on test data."""
    if metrics["best"]["validation"]:
        print_metrics(metrics["best"]["validation"], title=f"validation, epoch {metrics['best']['epoch']}")
    if "test" in metrics:
        print_metrics(metrics["test"], title="test")


def print_summaries(files: Mapping[str, Path]) -> None:
    """Prints the names of configs, studies or searches in the package, each with its summary."""
    from elmo_tasks.config.packaged import summary

    width = max(map(len, files))
    for name, path in files.items():
        print(f"{name:<{width}}  {summary(path)}")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table to standard output, with all columns except the first aligned to the right.

    On a terminal, cells are broken where it is too narrow; elsewhere each row is one line.
    """
    from rich.console import Console
    from rich.table import Table

    # If standard output is closed, rich would end the process with code 1: so it only makes the text. It draws lines
    # that the encoding of standard output has.
    is_terminal, encoding = sys.stdout.isatty(), sys.stdout.encoding or "utf-8"
    text = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace", newline="")
    # No markup: brackets in names and paths are printed as they are.
    width = None if is_terminal else _MOST_CHARACTERS
    console = Console(file=text, force_terminal=is_terminal, markup=False, highlight=False, width=width)
    table = Table()
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    console.print(title)
    console.print(table)
    text.seek(0)
    sys.stdout.write(text.read())


def shown_number(value: float | None) -> str:
    """A metric as tables show it; empty if there is none."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def print_confusion(table: ConfusionTable, title: str) -> None:
    """Prints which label is taken for which, of the most frequent labels."""
    from elmo_tasks.metrics.confusion import cells

    columns, *rows = cells(table)
    print_table(f"{title}, gold (rows) and predicted (columns)", columns, rows)


def print_label_scores(scores: LabelScores, title: str) -> None:
    """Prints how well each label is found, the macro F1, and the accuracy of always giving the most frequent one."""
    columns = ("precision", "recall", "f1")
    rows = [
        [label, *(f"{values[name]:.2f}" for name in columns), f"{values['support']:.0f}"]
        for label, values in scores["labels"].items()
    ]
    rows += [["macro F1", "", "", f"{scores['macro_f1']:.2f}", ""]]
    print_table(title, ["label", *columns, "number"], rows)
    print(f"accuracy of always giving the most frequent label: {scores['majority']:.2f}")
