"""The rows of spreadsheets and Parquet files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.limits import unpacked_text

SHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".parquet")  # .xls is refused


def sheet_rows(path: Path, sheet: str | None) -> Iterator[tuple[int, list[Any]]]:
    """The number of each row, from 1, and its cells: strings, or lists in a Parquet file. The header row is the first.

    Arguments:
        sheet: the one to read; None for the only one that has cells.

    Raises:
        DataError: the file is damaged, or several sheets have cells, or none has this name.
        ElmoTasksError: the packages of the extra `tables` are not installed.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() == ".parquet":
            table = pq.read_table(path)
            rows = [table.column_names, *([*row.values()] for row in table.to_pylist())]
        else:
            rows = _cells(path, sheet)
    except ImportError as error:
        raise ElmoTasksError(f"{path}: {error}. Install what reads it: pip install 'elmo-tasks[tables]'") from None
    except (pa.ArrowException, zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise DataError(path, f"is damaged, or not .xlsx, .ods or .parquet ({error})") from None
    for number, row in enumerate(rows, start=1):
        yield number, [_cell(cell) for cell in row]


def _cell(value: Any) -> str | list[Any]:
    """A list, or the text of a cell: none also for an error of a formula, such as #N/A, which is not a number."""
    if isinstance(value, list):
        return value
    return "" if value is None or value != value else str(value)


def _cells(path: Path, sheet: str | None) -> list[list[Any]]:
    import pandas

    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > unpacked_text(path.stat().st_size):
            raise DataError(path, "unpacks to far more than a spreadsheet")
    frames = pandas.read_excel(path, sheet_name=None, header=None, dtype=object, na_filter=False)
    filled = {name: frame.to_numpy().tolist() for name, frame in frames.items() if not frame.empty}
    if (sheet or len(filled) > 1) and sheet not in filled:
        remedy = f"Set --set 'dataset_reader.sheet={next(iter(filled), '')}', or another"
        raise DataError(path, f"the sheets with cells are {', '.join(map(repr, filled))}. {remedy}")
    return filled[sheet] if sheet else next(iter(filled.values()), [])
