"""Tables: CSV, TSV, spreadsheets, Parquet, and columns of tokens and tags with a token on each line."""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import logging
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import datasets
import pydantic
from pydantic import Field

from elmo_tasks.data_readers.columns import DOCUMENT_BORDER, Line, LineWidths
from elmo_tasks.data_readers.reader import DatasetReaderConfig
from elmo_tasks.data_readers.records import Decimal, Record, name_of
from elmo_tasks.data_readers.rows import ROW_TASKS, RowReader, RowReaderConfig, TableTaskName
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError, ElmoTasksError, did_you_mean
from elmo_tasks.extras.tables.sheets import SHEETS, SheetCell, read_sheet
from elmo_tasks.extras.tables.table_columns import check_header, check_skipped, find_columns, find_decimal
from elmo_tasks.extras.tables.table_format import (
    SAMPLE_ROWS,
    SEPARATOR_LINE,
    TableFormat,
    find_format,
    table_lines,
)
from elmo_tasks.files.text import CR_TO_LF

logger = logging.getLogger(__name__)

# The number of a row's first line, its lines, and its cells, none for a comment; or what is wrong with its first line.
Row = tuple[int, str, "list[str] | DataError"]
_LONGEST = 150  # lines of a sentence that is the whole file
_SENTENCE = "if a column has the sentence, name it: --set dataset_reader.columns.sentence=NAME"
SENTENCE = "sentence"  # what `columns` calls the column of the sentence, if a line has a token


def _known_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name.replace("utf-", "UTF-")
    except LookupError:
        raise ValueError("not an encoding; expected a name such as 'cp1252' or 'utf-8'") from None


class DelimitedConfig(RowReaderConfig):
    """Tables: CSV, TSV, and columns of tokens and tags with a token on each line."""

    reads_tables = True
    type: Literal["delimited"] = "delimited"
    task_name: TableTaskName = Field(alias="task", description="What to learn from the rows.")
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="Separates columns, such as ';'; by default, it is found out from the file."
    )
    encoding: Annotated[str, pydantic.AfterValidator(_known_encoding)] | None = Field(
        None, description="Of the file, such as 'cp1252'; by default UTF-8, UTF-16 or Windows-1252, as the file has it."
    )
    sheet: str | None = Field(None, description="Of a spreadsheet: the sheet that is read, if several have cells.")
    decimal: Decimal | None = Field(
        None, description="Separates the fractions of scores; by default, it is found out from the file."
    )
    skip_rows: Annotated[int, Field(ge=0)] = Field(
        0, description="How many rows, or lines of text, are above the header row or the first row, such as a title."
    )
    header: bool = Field(True, description="Whether the first line has the names of the columns.")
    quotes: bool | None = Field(
        None,
        description="Whether cells can be in double quotes, as in CSV; by default, unless the delimiter is a space, or "
        "a tab and the file does not show that they are.",
    )
    token_per_line: bool = Field(
        True,
        description="Tagging: a line has a token and its tag, and an empty line ends a sentence, or another value in "
        "the column that `columns` calls 'sentence'; false: a line is a sentence, with spaces between its tokens and "
        "between its tags.",
    )

    trained_columns: Mapping[str, str] = Field(
        {},
        description="Written by `train`: the columns of the training data. Other tables are read by them, if they "
        "have them.",
    )
    comment: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="What lines begin with that are left out, such as '#'."
    )

    @pydantic.model_validator(mode="after")
    def _names_need_a_header(self) -> DelimitedConfig:
        columns = {**self.row_columns(), **self.columns}
        if not self.header and (named := [name for name, column in columns.items() if isinstance(column, str)]):
            raise ValueError(f"columns: without a header row they have numbers; expected those of {', '.join(named)}")
        return self

    @property
    def by_token(self) -> bool:
        """Whether a line has a token and its tag."""
        return self.task_name == "tagging" and self.token_per_line

    def row_columns(self) -> dict[str, str | int]:
        """As for all rows. With a token on each line, `columns` may also name the one of the sentence."""
        columns = {name: column for name, column in self.columns.items() if name != SENTENCE or not self.by_token}
        return ROW_TASKS[self.task_name].columns(columns)

    def trained_on(self, path: Path, earlier: DatasetReaderConfig | None = None) -> DelimitedConfig:
        if self.row_columns().keys() <= self.columns.keys():  # as without a header row
            return self
        known = dict(self.trained_columns)
        if isinstance(earlier, DelimitedConfig):
            known = {**earlier.trained_columns, **_names(earlier.columns), **known}
        config = self.model_copy(update={"trained_columns": known})
        found = config.build().find_layout(path, Parsing()).columns
        return self.model_copy(update={"trained_columns": _names(found)})

    def build(self) -> DelimitedReader:
        return DelimitedReader(self)


def _names(columns: Mapping[str, str | int]) -> dict[str, str]:
    """The columns that have names, and not numbers."""
    return {what: column for what, column in columns.items() if isinstance(column, str)}


class _Layout(NamedTuple):
    """How a table is written (None for a spreadsheet), the columns that are read, and what separates fractions."""

    format: TableFormat | None
    columns: dict[str, str | int]
    decimal: Decimal
    warning: str  # about rows that are left out


class DelimitedReader(RowReader):
    """Reads a table with Python's `csv`, or a spreadsheet. Rows without any text are left out, or end a sentence."""

    config: DelimitedConfig

    def file_key(self, path: Path, parsing: Parsing) -> list[str]:
        (file,) = self.files(path)
        return [str(self._layout(file, parsing)), *super().file_key(path, parsing)]

    def hub_examples(self, rows: datasets.Dataset, source: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        if SENTENCE in self.config.columns:
            raise ElmoTasksError(
                f"{source}: 'columns' names one of the sentence; a row of a hub data set is a sentence"
            )
        return super().hub_examples(rows, source, parsing)

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        layout, name = self._layout(path, parsing), str(path)
        return self._examples(
            lambda each: self.records(path, each), name, None, layout.columns, parsing, layout.decimal
        )

    def table(self, path: Path) -> tuple[TableFormat | None, Line | None, list[Row]]:
        """The format of a table to predict, if it is not a spreadsheet, its header row, if any, and its other rows."""
        parsing = Parsing(needs_labels=False)
        format = self._layout(path, parsing).format
        with self._open(path, format, parsing) as (header, rows):
            return format, header, [*rows]

    def is_data(self, cells: list[str] | DataError) -> bool:
        """Whether a row can be read, and is not blank or, between tokens, a border of documents."""
        is_border = self.config.by_token and isinstance(cells, list) and DOCUMENT_BORDER in cells
        return isinstance(cells, list) and not _is_blank(cells) and not is_border

    @contextlib.contextmanager
    def _open(
        self, path: Path, format: TableFormat | None, parsing: Parsing
    ) -> Iterator[tuple[Line | None, Iterator[Row]]]:
        """The header row, if there is one, and the rows below it."""
        with contextlib.closing(self._rows(path, format, parsing)) as rows:
            header = next((row for row in rows if not _is_blank(row[2])), None) if self.config.header else None
            yield (_without_errors([header])[0] if header else None), rows

    def _layout(self, path: Path, parsing: Parsing) -> _Layout:
        """What is found out from a file, which the log says once; errors as of `find_layout`."""
        if "layout" not in parsing.found:
            parsing.found["layout"] = layout = self.find_layout(path, parsing)
            found = [str(layout.format or parsing.found["sheet"]), "decimal commas" if layout.decimal == "," else ""]
            if not layout.columns.keys() <= self.config.columns.keys():
                columns = layout.columns.items()
                are_usual = all(each == name for name, each in columns)
                found += [] if are_usual else [f"{name} from {each!r}" for name, each in columns]
            if any(found):
                logger.info("%s: %s", path, ", ".join(filter(None, found)))
            if layout.warning:
                logger.warning("%s: %s", path, layout.warning)
        found_layout: _Layout = parsing.found["layout"]
        return found_layout

    def find_layout(self, path: Path, parsing: Parsing) -> _Layout:
        """What the settings say of a table and, where they say nothing, what its first rows show.

        Raises:
            DataError: the rows show nothing, or several things; the settings that choose are named.
        """
        columns, config, format = self.columns(parsing), self.config, None
        named = [{columns[what], config.trained_columns.get(what, "")} for what in columns] if config.header else []
        wanted = [{name.casefold() for name in names if name and isinstance(name, str)} for names in named]
        if path.suffix.lower() not in SHEETS:
            format = find_format(path, config, set().union(*wanted))
        with self._open(path, format, parsing) as (header, rows):
            sample_rows = [*itertools.islice(rows, SAMPLE_ROWS)]
        names = header[2] if header else None
        first = [(number, cells) for number, _, cells in sample_rows if isinstance(cells, list)]
        sample = [cells for _, cells in first if any(cells)]
        location = f"{path}:{header[0]}" if header else str(path)
        above = self._rows(path, format, parsing, skipped=True)
        skipped = [(number, cells) for number, _, cells in above if isinstance(cells, list)]
        known = _names({**config.trained_columns, **config.columns})
        top = names or next(iter(sample if not config.header else []), [])
        warning = check_skipped(top, skipped, [known.get(what, "") for what in columns], location)
        if names:
            check_header(names, first, wanted, location)
            columns = find_columns(columns, config.columns, config.trained_columns, names, sample, location)
        decimal = config.decimal or "."
        if "score" in columns and config.decimal is None and sample:
            index = self._column_index(columns["score"], names, len(sample[0]), location)
            decimal = find_decimal([cells[index] for cells in sample if index < len(cells)], location)
        return _Layout(format, columns, decimal, warning)

    def records(self, path: Path, parsing: Parsing) -> Iterator[Record]:
        layout = self._layout(path, parsing)
        with self._open(path, layout.format, parsing) as (header, rows):
            yield from self._records(path, layout, header, rows, parsing)

    def _records(
        self, path: Path, layout: _Layout, header: Line | None, rows: Iterator[Row], parsing: Parsing
    ) -> Iterator[Record]:
        by_token = self.config.by_token
        names = header[2] if header else None
        numbers = [column for column in layout.columns.values() if isinstance(column, int)]
        least = max([1, *(column + 1 if column >= 0 else -column for column in numbers)])
        widths = LineWidths(path, least, parsing, known=header)
        indices: dict[str | int, int] = {}
        unsure: list[tuple[int, str]] = []
        others = {} if parsing.needs_labels or by_token else distinct_names(names or ())  # predictions keep them
        for group in self._groups(rows, names, path):
            first, _, cells = group[0]
            if by_token and isinstance(cells, list) and DOCUMENT_BORDER in cells:
                border = {column: [DOCUMENT_BORDER] for column in layout.columns.values()}
                yield Record(border, first, f"{path}:{first}")
                continue
            with parsing.caught():
                lines = widths.check(_without_errors(group))
                if not lines:
                    continue
                if again := next((number for number, _, cells in lines if names and cells == names), 0):
                    raise DataError(path, "the header row again, as in files that were joined; delete it", again)
                location = f"{path}:{(header or lines[0])[0]}"
                indices = indices or {
                    column: self._column_index(column, names, len(lines[0][2]), location)
                    for column in layout.columns.values()
                }
                for (number, _, cells), (column, index) in itertools.product(lines, indices.items()):
                    cell = cells[index]
                    if isinstance(cell, SheetCell) and cell.problem:
                        raise DataError(path, f"{name_of(column)}: {cell.problem}", number)
                    if isinstance(cell, SheetCell) and not cell.is_as_shown and column != layout.columns.get("score"):
                        unsure.append((number, cell))
                first, _, cells = lines[0]
                values = [getattr(cell, "value", cell) for cell in cells]  # a number of a spreadsheet is one
                columns: dict[str | int, Any] = {
                    name: values[at] for name, at in others.items() if names and (names[at] or values[at] != "")
                }
                for what, column in layout.columns.items():
                    index = indices[column]
                    columns[column] = values[index] if what == "score" else cells[index]
                    if by_token:
                        columns[column] = [cells[index].strip(" ") for *_, cells in lines]
                is_whole = by_token and lines[-1][0] - first == len(lines) - 1  # nothing is between the tokens' lines
                yield Record(columns, first, f"{path}:{first}", (f"{path}:", first) if is_whole else None)
        if unsure:
            problem = (
                f"{len(unsure)} date(s) or number(s) may not be read as they are shown, the first as {unsure[0][1]!r}"
            )
            logger.warning("%s:%d: %s; make them text", path, unsure[0][0], problem)

    def _groups(self, rows: Iterator[Row], names: Sequence[str] | None, path: Path) -> Iterator[list[Row]]:
        """The rows of each example: each, or with a token on each line those of a sentence. A border is by itself."""
        if not self.config.by_token:
            yield from ([row] for row in rows if not _is_blank(row[2]))
            return
        column = self.config.columns.get(SENTENCE)
        group: list[Row] = []
        sentence, after_border = "", False
        for row in rows:
            cells = row[2] if isinstance(row[2], list) else []
            is_blank, is_border, number = _is_blank(row[2]), DOCUMENT_BORDER in cells, ""
            if column is not None and cells:
                index = self._column_index(column, names, len(cells), f"{path}:{row[0]}")
                number = cells[index].strip() if index < len(cells) else ""
            if group and (is_blank or is_border or after_border or number not in ("", sentence)):
                yield group
                group = []
            sentence, after_border = number or sentence, is_border
            if not is_blank:
                group.append(row)
        if group:
            is_named = any(name.casefold().startswith(("sentence", "sent_id")) for name in names or ())
            if column is None and group[0][0] <= 2 and len(group) > (1 if is_named else _LONGEST):
                logger.warning("%s: a sentence of %d lines, without an empty line; %s", path, len(group), _SENTENCE)
            yield group

    def _rows(
        self, path: Path, format: TableFormat | None, parsing: Parsing, *, skipped: bool = False
    ) -> Generator[Row, None, None]:
        """The cells of each row, which takes several lines if a cell in quotes does; or of those that are `skipped`."""
        comments = (self.config.comment,) if self.config.comment else ()
        start, stop = (0, self.config.skip_rows) if skipped else (self.config.skip_rows, None)
        if format is None:
            if "rows" not in parsing.found:
                parsing.found["sheet"], rows = read_sheet(path, self.config.sheet)
                parsing.found["rows"] = [*enumerate(rows, start=1)]
            for number, cells in parsing.found["rows"][start:stop]:
                if not (line := "\t".join(map(str, cells))).startswith(comments):
                    yield number, line, cells
            return
        lines = itertools.islice(table_lines(path, format.encoding, start), stop)
        taken, given_back = list[tuple[int, str]](), deque[tuple[int, str]]()

        def csv_lines() -> Iterator[str]:
            """The lines for Python's `csv`, without comments."""
            while given := given_back.popleft() if given_back else next(lines, None):
                names_delimiter = given[0] == 1 and SEPARATOR_LINE.fullmatch(given[1])
                if taken or not (names_delimiter or given[1].startswith(comments)):  # not within a cell in quotes
                    taken.append(given)
                    yield f"{given[1]}\n"

        quoting: Any = csv.QUOTE_MINIMAL if format.quotes else csv.QUOTE_NONE
        reader: Any = None
        while True:
            options: Any = {"quoting": quoting, "skipinitialspace": format.blanks, "strict": True}
            reader = reader or csv.reader(csv_lines(), delimiter=format.delimiter, **options)
            taken.clear()
            try:
                row: list[str] | DataError = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                row = _not_a_row(path, error, taken, quotes=format.quotes)
            if nul := next((number for number, line in taken if "\0" in line), None):
                row = DataError(path, "a NUL byte, which is not text; export the table again, or delete the line", nul)
            if isinstance(row, DataError):
                given_back.extendleft(reversed(taken[1:]))  # the next line may begin a row
                del taken[1:]
                reader = None
            yield taken[0][0], "\n".join(line for _, line in taken), row

    def _column_index(self, column: str | int, names: Sequence[str] | None, width: int, location: str) -> int:
        if isinstance(column, int):
            if not -width <= column < width:
                raise DataError(location, f"no column {column} among {width}; name others in 'columns'")
            return column
        if len(same := [at for at, name in enumerate(names or ()) if name == column]) > 1:
            choice = f"choose one by its number in 'columns': {' or '.join(map(str, same))}"
            raise DataError(location, f"{column!r} is the name of {len(same)} columns; {choice}")
        if not same:
            remedy = f"name the columns in 'columns'.{did_you_mean(column, names or ())}"
            raise DataError(location, f"no column {column!r} among {', '.join(names or ())[:200]}; {remedy}")
        return same[0]


def _not_a_row(path: Path, error: csv.Error, lines: Sequence[tuple[int, str]], *, quotes: bool) -> DataError:
    """What is wrong with the lines that Python's `csv` has read for a row."""
    (first, _), (last, text) = lines[0], lines[-1]
    quoted = f", in a cell in quotes that goes on to line {last}" if last > first else ""
    remedy = "; with quotes: false, quotes are text" if quotes else ""
    if "\r" in text:
        remedy = f"; a CR ends no line next to LF; convert the file with: {CR_TO_LF}"
    return DataError(path, f"not a row of a table ({error}{quoted}){remedy}", first)


def _without_errors(rows: list[Row]) -> list[Line]:
    """The rows, or the first error among them."""
    if error := next((row[2] for row in rows if isinstance(row[2], DataError)), None):
        raise error
    return cast("list[Line]", rows)


def distinct_names(names: Sequence[str]) -> dict[str, int]:
    """The columns by names of their own: a second one of a name has its number, and so have those without a name."""
    is_own = [bool(name) and names.index(name) == at for at, name in enumerate(names)]
    return {name if is_own[at] else f"{name or 'column'} {at + 1}": at for at, name in enumerate(names)}


def _is_blank(cells: list[str] | DataError) -> bool:
    """Whether a row has no text, and no cell that should have one."""
    if isinstance(cells, DataError) or "".join(map(str, cells)).strip():
        return False
    return not any(getattr(cell, "problem", "") for cell in cells)
