"""Files and hub columns of sentence pairs, as records by column name: jsonl, or tab-separated with a header row."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import datasets

from elmo_tasks.files import parse_json, read_lines

Record = Mapping[str, Any]  # column name -> value

# MultiNLI's header row has five columns for the annotators' labels at its end, its rows those that they need.
_OPTIONAL_COLUMN = re.compile(r"label\d")


class RecordError(Exception):
    """A record that is wrong.

    Arguments:
        number: the line of a file, from 1, or the row of a hub data set, from 0; None for a hub data set as a whole.
        problem: what came and what was wanted.
    """

    def __init__(self, number: int | None, problem: str) -> None:
        super().__init__(problem)
        self.number = number
        self.problem = problem


def read_records(path: Path) -> Iterator[tuple[int, Record]]:
    """Yields (line number, record) of a file, jsonl if its first line begins with a brace, else tab-separated.

    Blank lines after the first are passed over. Quotes have no meaning in the tab-separated form.

    Raises:
        RecordError: a line holds another JSON value than an object, or does not have the columns of the header row.
        DataError: the file is missing or damaged, or not UTF-8; a line is no JSON that can be read.
    """
    lines = read_lines(path)
    _, first = next(lines, (1, ""))
    rest = ((number, line) for number, line in lines if line.strip())
    if first.lstrip().startswith("{"):
        for number, line in itertools.chain([(1, first)], rest):
            yield number, _parse_json(path, number, line)
    else:
        names = first.split("\t")
        if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise RecordError(1, f"columns that the header row has twice: {', '.join(map(repr, repeated))}")
        for number, line in rest:
            yield number, _split_row(number, line, names)


def _parse_json(path: Path, number: int, line: str) -> Record:
    value = parse_json(line, path, "a JSON object a line", number)
    if not isinstance(value, dict):
        raise RecordError(number, f"a JSON {type(value).__name__}; wanted an object")
    return value


def _split_row(number: int, line: str, names: list[str]) -> Record:
    fields = line.split("\t")
    needed = len(names)
    while needed and _OPTIONAL_COLUMN.fullmatch(names[needed - 1]):
        needed -= 1
    if not needed <= len(fields) <= len(names):
        raise RecordError(number, f"{len(fields)} column(s); wanted {len(names)} as in the header row: {line[:80]!r}")
    return dict(zip(names, fields, strict=False))


def class_names(feature: Any, column: str) -> dict[Any, str]:
    """The names of a hub column's class ids, `-` for those without a label; empty where it holds the names themselves.

    Raises:
        RecordError: the column holds neither.
    """
    if isinstance(feature, datasets.ClassLabel):
        return {-1: "-", None: "-", **dict(enumerate(feature.names))}
    if getattr(feature, "dtype", None) in ("string", "large_string"):
        return {None: "-"}
    raise RecordError(None, f"column {column!r}: {feature}; wanted labels as strings or as class ids with names")
