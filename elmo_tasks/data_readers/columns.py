"""Files of one token per line, with columns separated by spaces and tabs, and an empty line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from elmo_tasks.errors import DataError
from elmo_tasks.files import read_lines

_SEPARATOR = re.compile(r"[ \t]+")  # not every whitespace: a token may contain a no-break space


def read_rows(
    path: Path, least: int, *, borders: tuple[str, ...] = (), same_in_file: bool = False
) -> Iterator[tuple[int, list[list[str]]]]:
    """Yields (number of the first line, columns of each line) of each sentence.

    Arguments:
        path: the file, compressed or not.
        least: the lowest number of columns of a line.
        borders: first columns of the lines between documents. Such a line ends a sentence, and comes as the only row,
            `[[line]]`.
        same_in_file: all lines have the same number of columns, not only those of a sentence.

    Raises:
        DataError: a line has too few columns, or not as many as the first. File and line are named.
    """
    rows: list[list[str]] = []
    number = width = width_line = 0  # the wanted number of columns, and the line that has it
    for number, line in read_lines(path):
        columns = _SEPARATOR.split(line.strip(" \t")) if line.strip() else []
        is_border = columns[:1] != [] and columns[0] in borders
        if rows and (is_border or not columns):
            yield number - len(rows), rows
            rows = []
        if is_border:
            yield number, [[line]]
        elif columns:
            if not rows and not same_in_file:
                width_line = 0
            if len(columns) < least or (width_line and len(columns) != width):
                wanted = f"{width} as in line {width_line}" if width_line else f"at least {least}"
                raise DataError(path, f"{len(columns)} column(s); wanted {wanted}: {line[:80]!r}", number)
            width, width_line = len(columns), width_line or number
            rows.append(columns)
    if rows:
        yield number + 1 - len(rows), rows
