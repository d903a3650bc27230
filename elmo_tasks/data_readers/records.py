"""Records: the rows of tables, JSON lines and the rows of hub data sets, with their places for errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import datasets

from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.errors import DataError
from elmo_tasks.files.json_files import parse_json


class Record(NamedTuple):
    """A row: the values of its columns by name, its number (a line from 1, or a row from 0) and its place.

    If each token of the row has a line, `token_lines` is the file and the first line, such as `("data.tsv:", 7)`.
    """

    columns: Mapping[Any, Any]  # a column without a name has a number
    number: int
    place: str
    token_lines: tuple[str, int] | None = None

    @property
    def token_place(self) -> tuple[str, int]:
        """What errors about a token begin with, and the number of the first token."""
        return self.token_lines or (f"{self.place}, token ", 0)

    def value(self, column: str | int) -> Any:
        """The value of a column.

        Raises:
            DataError: the record does not have the column.
        """
        if column not in self.columns:
            raise DataError(self.place, f"no {column!r} among {', '.join(map(str, self.columns))}")
        return self.columns[column]

    def text(self, column: str | int) -> str:
        """The string of a column."""
        value = self.value(column)
        if not isinstance(value, str):
            raise DataError(self.place, f"{column!r} is {value!r}; wanted a string")
        return value

    def items(self, column: str | int) -> list[Any]:
        """The list of a column."""
        value = self.value(column)
        if not isinstance(value, list):
            raise DataError(self.place, f"{column!r} is {value!r}; wanted a list")
        return value


def json_records(lines: Iterable[tuple[int, str]], path: Path, bad_units: BadUnits) -> Iterator[Record]:
    """The objects of numbered JSON lines; blank lines are left out."""
    for number, line in lines:
        if not line.strip():
            continue
        with bad_units.caught():
            value = parse_json(line, path, "one JSON object per line", number)
            if not isinstance(value, dict):
                raise DataError(path, f"a JSON {type(value).__name__}; wanted an object", number)
            yield Record(value, number, f"{path}:{number}")


def hub_records(rows: datasets.Dataset, source: str) -> Iterator[Record]:
    """The rows of a hub data set."""
    for number, row in enumerate(rows):
        yield Record(row, number, f"{source}: row {number}")
