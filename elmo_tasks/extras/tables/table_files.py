"""Writes tables: rows of results, or a table that was read with columns of results at its end."""

from __future__ import annotations

import csv
import importlib.util
import io
import itertools
import logging
import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.tables.delimited import DelimitedReader, distinct_names
from elmo_tasks.extras.tables.sheets import EXCEL_ESCAPE, damage_errors, open_excel, parts_of
from elmo_tasks.extras.tables.table_columns import usual_decimal
from elmo_tasks.extras.tables.table_format import TableFormat
from elmo_tasks.files.json_files import json_text
from elmo_tasks.files.text import open_binary

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_MOST_ROWS, _MOST_CHARACTERS = 1_048_576, 32_767  # of a sheet of Excel, and of a cell
_EXACT_NUMBERS = {".xlsx": 10**15, ".parquet": 2**63}  # whole numbers below them keep their digits
_NOT_IN_EXCEL = re.compile(rf"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?={EXCEL_ESCAPE.pattern[1:]})")


def check_written(path: str | None) -> None:
    """Raises `ElmoTasksError` if a package that writes this table is not installed."""
    if str(path).lower().endswith(".xlsx") and importlib.util.find_spec("openpyxl") is None:
        raise ElmoTasksError(f"{path}: needs openpyxl, which is not installed: pip install 'elmo-tasks[tables]'")


def write_table(path: str, stream: IO[bytes], names: Sequence[str] | None, rows: Sequence[Sequence[Any]]) -> None:
    """Writes a table of the kind that the path's ending says.

    A column of a Parquet file whose values have several types becomes one of texts. Excel has further sheets for more
    rows than it can show in one, and texts that are too long for a cell are cut, with a warning.

    Arguments:
        names: the header row, if there is one.
    """
    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        width = len(names) if names is not None else max(map(len, rows), default=0)
        columns = itertools.zip_longest(*rows) if rows else [()] * width
        arrays = {
            name: _array(values) for name, values in zip(distinct_names(names or [""] * width), columns, strict=True)
        }
        pq.write_table(pa.table(arrays), stream)
        return
    given = itertools.chain([] if names is None else [names], rows)
    if ending == ".xlsx":
        _write_workbook(path, stream, given)
        return
    format = TableFormat("UTF-8", "\t" if ending == ".tsv" else ",", quotes=True)
    content = "".join(f"{_line(cells, format)}\n" for cells in given)
    stream.write(content.encode("utf-8-sig" if ending == ".csv" else "utf-8"))  # Excel needs the mark


def _write_workbook(path: str, stream: IO[bytes], rows: Iterator[Sequence[Any]]) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book, cut = Workbook(write_only=True), list[int]()
    sheet = book.create_sheet("results")
    for number, row in enumerate(rows):
        if number and number % _MOST_ROWS == 0:
            sheet = book.create_sheet(f"results {number // _MOST_ROWS + 1}")
            logger.warning("%s: the rows from %d on are in the sheet %r", path, number + 1, sheet.title)
        cells = [WriteOnlyCell(sheet) for _ in row]
        for cell, value in zip(cells, row, strict=True):
            fill_cell(cell, value)
            if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
                cut.append(number + 1)
        sheet.append(cells)
    book.save(stream)
    if cut:
        problem = f"has only the first {_MOST_CHARACTERS:,} characters of {len(cut)} text(s), as Excel takes no more"
        logger.warning("%s: %s, the first in row %d; .csv and .parquet have all", path, problem, cut[0])


def fill_cell(cell: Any, value: Any) -> None:
    """Gives a cell of Excel a value. A text stays one, such as `=1` or `#N/A`, and so does a number of many digits."""
    if isinstance(value, (list, dict)) or (type(value) is int and abs(value) >= _EXACT_NUMBERS[".xlsx"]):
        value = json_text(value)
    if isinstance(value, str):
        text = value[:_MOST_CHARACTERS]
        cell.value = _NOT_IN_EXCEL.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
        cell.data_type = "s"
    else:
        cell.value = value


def _array(values: Sequence[Any]) -> pa.Array:
    """The values of a column of a Parquet file, as texts if they have several types, or too many digits."""
    kinds = {type(value) for value in values if value is not None}
    most = 2**53 if kinds == {int, float} else _EXACT_NUMBERS[".parquet"]
    if kinds <= {int, float} and all(abs(value) < most for value in values if type(value) is int):
        return pa.array(values, pa.float64() if float in kinds else None)
    is_one = len(kinds) == 1 and int not in kinds
    return pa.array(values if is_one else [None if value is None else _text(value) for value in values])


def _text(value: Any) -> str:
    """A value in a table of text: None is empty, and others are as in JSON."""
    return "" if value is None else str(value) if isinstance(value, str) else json_text(value)


def _line(cells: Sequence[Any], format: TableFormat) -> str:
    """A row of a table of text, without its line end."""
    texts = list(map(_text, cells))
    if not format.quotes:  # then a cell has no delimiter
        return format.delimiter.join(" ".join(text.split()) for text in texts)
    stream = io.StringIO()
    csv.writer(stream, delimiter=format.delimiter, lineterminator="\r\n").writerow(texts)  # these are put in quotes
    return stream.getvalue().removesuffix("\r\n")


class TableCopy:
    """A table that was read, to be written with columns of results at its end.

    If it stays a workbook, a Parquet file or text, its rows, cells and formats stay as they are; otherwise its cells
    are written anew, in their order. Rows without a result have blank cells. Where the cells of a text have decimal
    commas, and are not separated by commas, results have them, too.

    Arguments:
        path: the file that is written.
        reader, source: what reads the table, and its file.

    Raises:
        DataError: Excel does not take a cell.
    """

    def __init__(self, path: str, reader: DelimitedReader, source: Path) -> None:
        self._path, self._source, self._is_data = path, source, reader.is_data
        self._format, self._header, self._rows = reader.table(source)
        self._gives_several = reader.config.task_name == "tagging" and not reader.config.by_token
        self._kind = Path(path).suffix.lower()
        same = source.suffix.lower().replace(".xlsm", ".xlsx")
        if self._format:
            same = ".tsv" if self._format.delimiter == "\t" else ".csv"
        self._is_same = same == self._kind and not self._gives_several
        self._decimal = reader.config.decimal or "."
        if reader.config.decimal is None and self._format and self._format.delimiter != ",":
            lines = (cells for *_, cells in self._rows if isinstance(cells, list))
            self._decimal = usual_decimal(itertools.chain.from_iterable(lines))
        if self._kind == ".xlsx" and self._is_same:
            with damage_errors(source):
                self._book, _, self._sheet = open_excel(source, reader.config.sheet, rich_text=True)
                if any(part.startswith(("xl/charts/", "xl/media/")) for part in parts_of(source)):
                    logger.warning("%s: charts and pictures of %s are left out", path, source)
        elif self._kind == ".xlsx":
            for number, _, cells in self._rows:
                if isinstance(cells, list) and any(len(str(cell)) > _MOST_CHARACTERS for cell in cells):
                    problem = f"a cell has more than {_MOST_CHARACTERS:,} characters, which Excel does not take"
                    raise DataError(source, f"{problem}; choose an --output that ends in .csv or .parquet", number)

    def write(self, stream: IO[bytes], found: Sequence[tuple[int, list[Row]]]) -> None:
        """Writes the table with what was found, a list for the number of a row where an example begins."""
        header, names = self._header, [*(self._header[2] if self._header else ())]
        keys = [*dict.fromkeys(key for _, rows in found for row in rows for key in row)]
        new = list[str]()
        for name in keys:
            while name in names:
                name = f"predicted_{name}"
            new.append(name)
        added: dict[int, list[list[Any]]] = {header[0]: [[*new]]} if header else {}
        for number, found_rows in self._by_row(found):
            added[number] = [[self._shown(row.get(key)) for key in keys] for row in found_rows]
        blank: list[Any] = [None] * len(keys)
        if not self._is_same:
            rows = [
                [*(getattr(cell, "value", cell) for cell in cells), *values]
                for number, _, cells in self._rows
                if isinstance(cells, list) and self._is_data(cells)
                for values in added.get(number) or [blank]
            ]
            write_table(self._path, stream, [*names, *new] if header else None, rows)
            return
        columns = {number: rows[0] for number, rows in added.items()}
        if self._format:
            self._write_text(stream, self._format, columns, blank)
        elif self._kind == ".parquet":
            parquet = pq.read_table(self._source)
            for at, name in enumerate(new):
                values = [columns.get(number, blank)[at] for number, *_ in self._rows]
                parquet = parquet.append_column(name, _array(values))
            pq.write_table(parquet, stream)
        else:
            self._write_sheet(stream, columns)

    def _shown(self, value: Any) -> Any:
        """A result as it is written: in a text, a number has the mark of the table's numbers."""
        is_text = self._format and self._kind in (".csv", ".tsv")
        return json_text(value).replace(".", self._decimal) if is_text and isinstance(value, float) else value

    def _by_row(self, found: Sequence[tuple[int, list[Row]]]) -> Iterator[tuple[int, list[Row]]]:
        """What was found in each row: one thing, also where an example has several rows, or everything."""
        results, values = deque(found), deque[Row]()
        for number, _, cells in self._rows:
            if not self._is_data(cells):
                continue
            if results and results[0][0] <= number:
                values = deque(results.popleft()[1])
            if values:
                yield number, [*values] if self._gives_several else [values.popleft()]
                values = deque() if self._gives_several else values

    def _write_sheet(self, stream: IO[bytes], columns: dict[int, list[Any]]) -> None:
        header = self._header
        rows = [cells for *_, cells in [*([header] if header else ()), *self._rows] if isinstance(cells, list)]
        last = max(at for cells in rows for at, cell in enumerate(cells, start=1) if cell != "")
        for number, values in columns.items():
            for column, value in enumerate(values, start=last + 1):
                fill_cell(self._sheet.cell(number, column), value)
                if header and number == header[0]:
                    self._sheet.cell(number, column)._style = self._sheet.cell(number, last)._style
        self._book.save(stream)

    def _write_text(
        self, stream: IO[bytes], format: TableFormat, columns: dict[int, list[Any]], blank: list[Any]
    ) -> None:
        """Writes all lines as they are, and the new cells at the end of the last line of each row."""
        header, is_utf8 = self._header, format.encoding == "UTF-8"
        with open_binary(self._source) as given:
            content = given.read().decode("utf-8-sig" if is_utf8 else format.encoding, "surrogateescape")
        lines = re.split(r"(\r?\n)" if is_utf8 and "\n" in content else r"(\r?\n|\r)", content)  # as they are read
        for number, text, cells in [*([header] if header else ()), *self._rows]:
            width = len(header[2]) if header else len(cells) if isinstance(cells, list) else 0
            if isinstance(cells, list) and 0 < len(cells) <= width:
                values = [*[None] * (width - len(cells)), *columns.get(number, blank)]
                lines[2 * (number - 1 + text.count("\n"))] += _line(["", *values], format)
        encoding, shown = ("utf-8-sig", "UTF-8 with a mark") if self._kind == ".csv" else ("utf-8", "UTF-8")
        logger.info("%s: %s", self._path, format._replace(encoding=shown))
        stream.write("".join(lines).encode(encoding, "surrogateescape"))  # Excel needs the mark
