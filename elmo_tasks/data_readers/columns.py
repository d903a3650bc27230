"""Files of one token per line, with columns separated by spaces and tabs, and an empty line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.errors import DataError
from elmo_tasks.files import read_lines

_SEPARATOR = re.compile(r"[ \t]+")  # not every whitespace: a token may contain a no-break space


def read_rows(
    path: Path,
    least: int,
    bad_units: BadUnits,
    *,
    borders: tuple[str, ...] = (),
    same_in_file: bool = False,
    filler: str | None = None,
) -> Iterator[tuple[int, list[list[str]]]]:
    """Yields (number of the first line, columns of each line) of each sentence.

    Arguments:
        path: the file, compressed or not.
        least: the lowest number of columns of a line.
        bad_units: gets the error of a sentence with a wrong number of columns. If it is skipped, it comes without rows.
        borders: first columns of the lines between documents. Such a line ends a sentence, and comes as the only row,
            `[[line]]`.
        same_in_file: all lines have the same number of columns, not only those of a sentence.
        filler: a cell without a value. A tab that ends a line after it stands before an empty last column; other tabs
            at the end of a line mean nothing.

    Raises:
        DataError: a line has too few columns, or not as many as the first. File and line are named.
    """
    rows: list[list[str]] = []
    fault: DataError | None = None  # the first of the sentence
    number = width = width_line = 0  # the wanted number of columns, and the line that has it
    for number, line in read_lines(path):
        columns = _SEPARATOR.split(line.strip(" \t")) if line.strip() else []
        if columns and columns[-1] == filler and line.endswith("\t"):
            columns.append("")
        is_border = columns[:1] != [] and columns[0] in borders
        if rows and (is_border or not columns):
            yield number - len(rows), _without_faults(rows, fault, bad_units)
            rows, fault = [], None
        if is_border:
            yield number, [[line]]
        elif columns:
            if not rows and not same_in_file:
                width_line = 0
            if len(columns) < least or (width_line and len(columns) != width):
                wanted = f"{width} as in line {width_line}" if width_line else f"at least {least}"
                problem = f"{len(columns)} column(s); wanted {wanted}: {line[:80]!r}"
                fault = fault or DataError(path, problem, number)
            else:
                width, width_line = len(columns), width_line or number
            rows.append(columns)
    if rows:
        yield number + 1 - len(rows), _without_faults(rows, fault, bad_units)


def _without_faults(rows: list[list[str]], fault: DataError | None, bad_units: BadUnits) -> list[list[str]]:
    """The rows of a sentence, none if it has a fault that is skipped."""
    if fault is None:
        return rows
    bad_units.add(fault)
    return []
