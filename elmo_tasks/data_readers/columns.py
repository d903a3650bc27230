"""Files of one token per line, with columns separated by spaces and tabs, and an empty line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.errors import DataError
from elmo_tasks.files import read_lines

_SEPARATOR = re.compile(r"[ \t]+")  # not every whitespace: a token may contain a no-break space
_Sentence = list[tuple[str, list[str]]]  # its lines, and the columns of each


class _Width(NamedTuple):
    """The number of columns that lines must have, and the line that shows it."""

    columns: int
    line: int


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
        same_in_file: all lines have the same number of columns, not only those of a sentence: as many as the first
            sentence that is right.
        filler: a cell without a value. A tab that ends a line after it stands before an empty last column; other tabs
            at the end of a line mean nothing.

    Raises:
        DataError: a line has too few columns, or not as many as those before. File and line are named.
    """
    like: _Width | None = None
    for first, sentence in _sentences(path, borders, filler):
        if sentence[0][1][0] in borders:
            yield first, [[sentence[0][0]]]
            continue
        width, fault = _check(path, sentence, first, least, like)
        if fault is None:
            like = width if same_in_file else None
            yield first, [columns for _, columns in sentence]
        else:
            bad_units.add(fault)
            yield first, []


def _sentences(path: Path, borders: tuple[str, ...], filler: str | None) -> Iterator[tuple[int, _Sentence]]:
    """Yields the number of the first line, and all lines, of each sentence; a border is a sentence of its own."""
    sentence: _Sentence = []
    number = 0
    for number, line in read_lines(path):
        columns = _SEPARATOR.split(line.strip(" \t")) if line.strip() else []
        if columns and columns[-1] == filler and line.endswith("\t"):
            columns.append("")
        is_border = columns[:1] != [] and columns[0] in borders
        if sentence and (is_border or not columns):
            yield number - len(sentence), sentence
            sentence = []
        if is_border:
            yield number, [(line, columns)]
        elif columns:
            sentence.append((line, columns))
    if sentence:
        yield number + 1 - len(sentence), sentence


def _check(
    path: Path, sentence: _Sentence, first: int, least: int, like: _Width | None
) -> tuple[_Width | None, DataError | None]:
    """The number of columns of a sentence's lines, and what is wrong with the first that has another number."""
    for number, (line, columns) in enumerate(sentence, first):
        if like is None and len(columns) >= least:
            like = _Width(len(columns), number)
        elif like is None or len(columns) != like.columns:
            wanted = f"at least {least}" if like is None else f"{like.columns} as in line {like.line}"
            return like, DataError(path, f"{len(columns)} column(s); wanted {wanted}: {line[:80]!r}", number)
    return like, None
