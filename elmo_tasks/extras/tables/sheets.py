"""Spreadsheets and Parquet files: the rows of a sheet, with the text of each cell as the program shows it."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import itertools
import logging
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.limits import unpacked_text

logger = logging.getLogger(__name__)

SHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".parquet")  # .xls is refused
EXCEL_ESCAPE = re.compile("_x(?!0000|[Dd][89A-Fa-f])([0-9A-Fa-f]{4})_")  # of a character; not of half of one
# What a format shows as it is: a currency, a text in quotes, a character after a backslash; and colours and spaces.
_LITERAL = re.compile(r'\[\$([^\]-]*)[^\]]*\]|"([^"]*)"|\\(.)|\[[A-Za-z]+\]|[_*].')
_NUMBER_FORMAT = re.compile(r"([^#0?,.]*)([#,]*0+)(?:\.(0+))?([^#0?,.]*)")
_DATE_PARTS = re.compile(r"(?P<minute>(?<=h:)mm?|mm?(?=:s))|yyyy|yy|mm?|dd?|hh?|ss?")
_UNUSUAL_DATE = re.compile(r"m{3}|d{3}|s\.0", re.IGNORECASE)  # names of months and days, parts of seconds
_PARTS = {"y": "year", "m": "month", "d": "day", "h": "hour", "s": "second"}


class SheetCell(str):
    """The text of a cell that is not a text, such as a number or a date.

    Attributes:
        value: the number or truth value behind it; otherwise the text.
        is_as_shown: whether the program shows this text; False if it depends on the country.
        problem: why there is no text, such as an error of a formula.
    """

    value: Any
    is_as_shown: bool
    problem: str

    def __new__(cls, text: str, value: Any = None, *, is_as_shown: bool = True, problem: str = "") -> SheetCell:
        cell = super().__new__(cls, text)
        cell.value = value if isinstance(value, (bool, int, float)) else text
        cell.is_as_shown, cell.problem = is_as_shown, problem
        return cell


def read_sheet(path: Path, sheet: str | None) -> tuple[str, list[list[Any]]]:
    """What to say of the sheet that is read, if there are others, and its rows: strings, or lists in a Parquet file.

    Arguments:
        sheet: the one to read; None for the only one that has cells.

    Raises:
        DataError: the file is damaged, or several sheets have cells, or none has this name.
        ElmoTasksError: the packages of the extra `tables` are not installed.
    """
    with damage_errors(path):
        if path.suffix.lower() != ".parquet":
            is_open_document = "content.xml" in parts_of(path)
            return _open_document(path, sheet) if is_open_document else _excel(path, sheet)
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return "", [table.column_names, *([*map(_plain_cell, row.values())] for row in table.to_pylist())]


@contextlib.contextmanager
def damage_errors(path: Path) -> Iterator[None]:
    """For a block that reads a spreadsheet or a Parquet file: what libraries raise becomes an error of this project."""
    import pyarrow as pa

    try:
        yield
    except ImportError as error:
        raise ElmoTasksError(f"{path}: {error}. Install what reads it: pip install 'elmo-tasks[tables]'") from None
    except (pa.ArrowException, zipfile.BadZipFile, LookupError, TypeError, ValueError, OSError, SyntaxError) as error:
        raise DataError(path, f"is damaged, or not .xlsx, .ods or .parquet ({error})") from None


def parts_of(path: Path) -> list[str]:
    """The names of the files that a spreadsheet consists of."""
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > unpacked_text(path.stat().st_size):
            raise DataError(path, "unpacks to far more than a spreadsheet")
        return archive.namelist()


def _plain_cell(value: Any) -> Any:
    """A cell of a Parquet file: a list, or a text; None and NaN are empty."""
    if isinstance(value, (str, list)):
        return value
    return "" if value is None or value != value else SheetCell(str(value), value)


def _choose_sheet(path: Path, filled: Mapping[str, Any], sheet: str | None) -> tuple[str, Any]:
    """What to say of it, and the sheet with a name, or the only one of those that have cells; None if none has any."""
    if (sheet or len(filled) > 1) and sheet not in filled:
        remedy = f"Set --set 'dataset_reader.sheet={next(iter(filled), '')}', or another"
        raise DataError(path, f"the sheets with cells are {', '.join(map(repr, filled))}. {remedy}")
    others = ", ".join(repr(name) for name in filled if name != sheet)
    note = f"sheet {sheet!r}, not {others}" if others and sheet else ""
    return note, filled[sheet] if sheet else next(iter(filled.values()), None)


def open_excel(path: Path, sheet: str | None, **options: Any) -> tuple[Any, str, Any]:
    """A workbook of Excel, as openpyxl reads it; what to say of the sheet that is read; and it, None if it is empty."""
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of extensions that are not read
        book = openpyxl.load_workbook(path, **options)
    filled = {
        each.title: each for each in book.worksheets if any(cell is not None for row in each.values for cell in row)
    }
    return book, *_choose_sheet(path, filled, sheet)


def _excel(path: Path, sheet: str | None) -> tuple[str, list[list[Any]]]:
    _, note, read = open_excel(path, sheet)
    if read is None:
        return note, []
    rows = values = [*read.iter_rows()]
    given = {number for number, row in enumerate(rows, start=1) if any(cell.value is not None for cell in row)}
    if hidden := sorted(given.intersection(each for each, row in read.row_dimensions.items() if row.hidden)):
        logger.warning("%s:%d: %d hidden row(s) are read, such as those of a filter", path, hidden[0], len(hidden))
    if any(cell.data_type == "f" for row in rows for cell in row):
        values = [*open_excel(path, read.title, data_only=True)[2].iter_rows()]
    merged = {at: str(each) for each in read.merged_cells.ranges for at in each.cells}
    return note, [
        [_excel_cell(cell, known, merged) for cell, known in itertools.zip_longest(row, known_row)]
        for row, known_row in zip(rows, values, strict=True)
    ]


def _excel_cell(cell: Any, known: Any, merged: Mapping[tuple[int, int], str]) -> str:
    """The text of a cell of Excel; `known` is the same one with the value of its formula."""
    value, place = known.value, cell.coordinate
    if value is None:
        inside = merged.get((cell.row, cell.column))
        problem = (
            f"is part of the merged cells {inside}, of which only the first has a value; fill them" if inside else ""
        )
        if cell.data_type == "f":
            problem = "has a formula that was never calculated; open the file in Excel or LibreOffice, and save it"
        return SheetCell("", problem=problem and f"the cell {place} {problem}")
    if known.data_type == "e":
        return SheetCell("", problem=f"the formula of the cell {place} has the error {value}")
    if isinstance(value, str):
        return EXCEL_ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)
    text = shown(value, known.number_format)
    return SheetCell(str(value) if text is None else text, value, is_as_shown=text is not None)


def shown(value: Any, format: str) -> str | None:
    """What Excel shows of a number, a truth value, a date or a time; None if this depends on the country or is rare."""
    if isinstance(value, bool):
        return str(value).upper()
    section, *others = format.split(";")
    if isinstance(value, (int, float)):
        if format in ("General", "@"):
            return str(value) if isinstance(value, int) else f"{value:.15g}".upper()
        found = _NUMBER_FORMAT.fullmatch(_LITERAL.sub(r"\1\2\3", section))
        if not found or (others and value < 0):
            return None
        before, whole, fraction, after = found.groups("")
        number = decimal.Decimal(str(abs(value))) * (100 if "%" in after else 1)
        number = number.quantize(decimal.Decimal(1).scaleb(-len(fraction)), decimal.ROUND_HALF_UP)
        width = whole.count("0") + (len(fraction) + 1 if fraction else 0)
        digits = f"{number:{',' if ',' in whole else ''}f}".zfill(width)
        return f"{'-' if value < 0 else ''}{before}{digits}{after}".strip()
    if format == "mm-dd-yy" or isinstance(value, datetime.timedelta):  # the short date of the country
        return None

    def part(found: re.Match[str]) -> str:
        key = "minute" if found["minute"] else _PARTS[found[0][0]]
        return f"{getattr(value, key) % (100 if found[0] == 'yy' else 10_000):0{len(found[0])}}"

    plain = _LITERAL.sub(lambda literal: re.sub("[A-Za-z]", "@", "".join(filter(None, literal.groups()))), section)
    with contextlib.suppress(AttributeError):  # a time has no year
        text = _DATE_PARTS.sub(part, plain.lower())
        return None if re.search("[a-z@]", text) or _UNUSUAL_DATE.search(plain) else text
    return None


def _open_document(path: Path, sheet: str | None) -> tuple[str, list[list[Any]]]:
    """A sheet of an .ods file, as pandas reads it: without the formats of dates and numbers."""
    import pandas

    frames = pandas.read_excel(path, sheet_name=None, header=None, dtype=object, na_filter=False, engine="odf")
    filled = {name: frame.to_numpy().tolist() for name, frame in frames.items() if not frame.empty}
    note, rows = _choose_sheet(path, filled, sheet)
    return note, [[_unformatted(value) for value in row] for row in rows or ()]


def _unformatted(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = shown(value, "General") if isinstance(value, (bool, int, float)) else None
    return SheetCell(text or str(value), value, is_as_shown=isinstance(value, (bool, int)))
