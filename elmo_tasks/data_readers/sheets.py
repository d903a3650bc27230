"""The rows of spreadsheets and Parquet files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.limits import unpacked_text

SHEETS = (".xlsx", ".ods", ".parquet")


def sheet_rows(path: Path, sheet: str | None) -> Iterator[tuple[int, list[Any]]]:
    """The number of each row, from 1, and its cells as strings, lists in a Parquet file as lists; first the header.

    Arguments:
        sheet: the one to read; None for the only one that has cells.

    Raises:
        DataError: the file is damaged, or several sheets have cells, or none has this name.
        ElmoTasksError: the packages of the extra `tables` are not installed.
    """
    if path.suffix.lower() == ".parquet":
        yield from _parquet_rows(path)
        return
    cells = {name: frame for name, frame in _frames(path).items() if not frame.empty}
    if sheet is None and len(cells) > 1:
        remedy = f"Set --set 'dataset_reader.sheet={next(iter(cells))}', or another"
        raise DataError(path, f"{len(cells)} sheets have cells: {', '.join(map(repr, cells))}. {remedy}")
    if sheet is not None and sheet not in cells:
        raise DataError(path, f"no sheet {sheet!r} with cells; expected {', '.join(map(repr, cells))}")
    for frame in [cells[sheet]] if sheet else cells.values():
        yield from ((number, list(row)) for number, row in enumerate(frame.itertuples(index=False), start=1))


def _frames(path: Path) -> dict[str, Any]:
    try:
        import pandas

        with zipfile.ZipFile(path) as archive:
            if sum(part.file_size for part in archive.infolist()) > unpacked_text(path.stat().st_size):
                raise DataError(path, "unpacks to far more than a spreadsheet")
        frames = pandas.read_excel(path, sheet_name=None, header=None, dtype=str, na_filter=False)
    except ImportError as error:
        raise ElmoTasksError(f"{path}: {error}. Install what reads it: pip install 'elmo-tasks[tables]'") from None
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise DataError(path, f"the spreadsheet is damaged, or is not one ({error})") from None
    return dict(frames)


def _parquet_rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(path, f"the Parquet file is damaged ({error})") from None
    yield 1, table.column_names
    for number, row in enumerate(table.to_pylist(), start=2):
        cells = row.values()
        yield number, [each if isinstance(each, list) else "" if each is None else str(each) for each in cells]
