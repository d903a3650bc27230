"""Tables: CSV, TSV, and columns of tokens and tags with a token on each line."""

from __future__ import annotations

import csv
import itertools
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from elmo_tasks.data_readers.records import Record
from elmo_tasks.data_readers.row_examples import ROW_TASKS
from elmo_tasks.data_readers.rows import RowReader, RowReaderConfig
from elmo_tasks.errors import DataError, did_you_mean
from elmo_tasks.files import plain_name, read_lines
from elmo_tasks.limits import MAX_LINE_BYTES, limit

_Row = tuple[int, "list[str] | DataError"]  # the number of its first line, and its cells or what is wrong with them


class DelimitedConfig(RowReaderConfig):
    """Tables: CSV, TSV, and columns of tokens and tags with a token on each line."""

    type: Literal["delimited"] = "delimited"
    task_name: Literal["classification", "text_pairs", "tagging"] = Field(
        alias="task", description="What to learn from the rows."
    )
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="Separates columns; by default a comma in files named .csv, a tab in others."
    )
    header: bool = Field(True, description="Whether the first line has the names of the columns.")
    quotes: bool | None = Field(
        None,
        description="Whether cells can be in double quotes, as in CSV; by default, unless the delimiter is a tab or a "
        "space.",
    )
    token_per_line: bool = Field(
        True,
        description="Tagging: a line has a token and its tag, and an empty line ends a sentence; false: a line is a "
        "sentence, with spaces between its tokens and between its tags.",
    )

    @pydantic.model_validator(mode="after")
    def _names_need_a_header(self) -> DelimitedConfig:
        columns = ROW_TASKS[self.task_name].columns(self.columns)
        if not self.header and (named := [name for name, column in columns.items() if isinstance(column, str)]):
            raise ValueError(f"columns: without a header row they have numbers; wanted those of {', '.join(named)}")
        return self

    def build(self) -> DelimitedReader:
        return DelimitedReader(self)


class DelimitedReader(RowReader):
    """Reads a table with Python's `csv`. Lines without any text are left out, or end a sentence."""

    config: DelimitedConfig

    def file_key(self, path: Path) -> list[str]:
        return [self._delimiter(path), *super().file_key(path)]

    def records(self, path: Path) -> Iterator[Record]:
        rows = self._rows(path)
        names, header_line, width = None, 0, 0
        if self.config.header:
            header_line, names = _header(rows, path)
            width = len(names)
        places: dict[str | int, int] = {}
        by_token = self.config.task_name == "tagging" and self.config.token_per_line
        for group in _groups(rows, by_token):
            with self.bad_units.caught():
                for line, cells in group:
                    if isinstance(cells, DataError):
                        raise cells
                    header_line, width = header_line or line, width or len(cells)
                    if len(cells) != width:
                        wanted = f"{width} as in line {header_line}"
                        raise DataError(path, f"{len(cells)} column(s); wanted {wanted}: {str(cells)[:80]}", line)
                places = places or self._places(names, width, f"{path}:{header_line}")
                rows_of_cells = [cells for _, cells in group if isinstance(cells, list)]
                columns: dict[str | int, Any] = {
                    column: [cells[place] for cells in rows_of_cells] if by_token else rows_of_cells[0][place]
                    for column, place in places.items()
                }
                first = group[0][0]
                yield Record(columns, first, f"{path}:{first}", (f"{path}:", first) if by_token else None)

    def _rows(self, path: Path) -> Iterator[_Row]:
        """The cells of each row, which takes several lines if a cell in quotes does."""
        delimiter = self._delimiter(path)
        has_quotes = self.config.quotes if self.config.quotes is not None else delimiter not in "\t "
        lines = _Lines(read_lines(path))
        csv.field_size_limit(limit(MAX_LINE_BYTES))  # of the process; a cell may be as long as a line
        reader = csv.reader(
            lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE, strict=True
        )
        while True:
            lines.taken.clear()
            try:
                row: list[str] | DataError = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                first, last = lines.taken[0][0], lines.taken[-1][0]
                quoted = f", in a cell in quotes that goes on to line {last}" if last > first else ""
                remedy = "; with quotes: false, quotes are text" if has_quotes else ""
                row = DataError(path, f"not a row of a table ({error}{quoted}){remedy}", first)
            yield lines.taken[0][0], row
            if isinstance(row, DataError):
                lines.give_back(lines.taken[1:])  # the next line may begin a row

    def _delimiter(self, path: Path) -> str:
        return self.config.delimiter or ("," if plain_name(path).lower().endswith(".csv") else "\t")

    def _places(self, names: Sequence[str] | None, width: int, place: str) -> dict[str | int, int]:
        """The place in a row of each column that is wanted."""
        places: dict[str | int, int] = {}
        for column in ROW_TASKS[self.config.task_name].columns(self.config.columns).values():
            if isinstance(column, int):
                if not -width <= column < width:
                    raise DataError(place, f"no column {column} among {width}; name others in 'columns'")
                places[column] = column
            elif names is not None:
                if column not in names:
                    remedy = f"name the columns in 'columns'.{did_you_mean(column, names)}"
                    raise DataError(place, f"no column {column!r} among {', '.join(names)[:200]}; {remedy}")
                places[column] = names.index(column)
        return places


class _Lines:
    """The lines of a file for Python's `csv`.

    Attributes:
        taken: the numbers and lines that were read. The reader clears it.
    """

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self._next: deque[tuple[int, str]] = deque()
        self.taken: list[tuple[int, str]] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        number, line = self._next.popleft() if self._next else next(self._lines)
        self.taken.append((number, line))
        return f"{line}\n"

    def give_back(self, lines: Sequence[tuple[int, str]]) -> None:
        """Lines that were taken, which come next."""
        self._next.extendleft(reversed(lines))


def _header(rows: Iterator[_Row], path: Path) -> tuple[int, list[str]]:
    """The line and the names of the header row."""
    line, names = next((row for row in rows if not _is_blank(row)), (1, []))
    if isinstance(names, DataError):
        raise names
    if repeated := [name for name, count in Counter(names).items() if count > 1 and name]:
        raise DataError(path, f"columns that the header row has twice: {', '.join(map(repr, repeated))}", line)
    return line, names


def _groups(rows: Iterator[_Row], by_token: bool) -> Iterator[list[_Row]]:
    """The rows of each example: those between blank lines, or each."""
    if by_token:
        yield from (list(group) for is_blank, group in itertools.groupby(rows, key=_is_blank) if not is_blank)
    else:
        yield from ([row] for row in rows if not _is_blank(row))


def _is_blank(row: _Row) -> bool:
    return isinstance(row[1], list) and not any(cell.strip() for cell in row[1])
