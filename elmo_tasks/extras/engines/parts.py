"""A folder of Parquet files, one for each unit of the input, that several processes may fill together.

_manifest.json    the settings that all parts were made with, so that no part is made with others
NAME-LINE-DIGEST.parquet    the results of a unit; it appears when it is complete

The readers of folders of Parquet files skip names that begin with `_`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from elmo_tasks.elmo.fast import forget_words
from elmo_tasks.errors import ElmoTasksError, IncompleteError, counted
from elmo_tasks.extras.engines.units import Unit, read_units
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.progress import progress_bar

_MANIFEST = "_manifest.json"


class Made(NamedTuple):
    """What was made of units.

    Attributes:
        parts: how many parts.
        errors: how many of their rows have an error instead of results.
    """

    parts: int = 0
    errors: int = 0


TableFunction = Callable[[pa.Table], pa.Table]


class PartsFolder:
    """The folder with the results of units.

    Arguments:
        path: the folder; it is made with the first part.
        settings: what decides about the results, as values for JSON. All processes must have the same.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.settings = dict(settings)

    def check_settings(self) -> None:
        """Raises `ElmoTasksError` if the folder has parts that were made with other settings."""
        if not (manifest := self.path / _MANIFEST).is_file():
            if found := next(self.path.glob("*.parquet"), None):
                raise ElmoTasksError(f"{self.path}: has {found.name}, but no {_MANIFEST}; choose another folder")
            return
        written = read_json(manifest, dict[str, Any], "the settings of a folder of parts")
        for key in {**written, **self.settings}:
            expected, actual = written.get(key), self.settings.get(key)
            if actual != expected:
                raise ElmoTasksError(
                    f"{self.path}: its parts were made with {key} = {expected!r}; got {actual!r}. Use the same "
                    "settings, or choose another folder"
                )

    def begin(self) -> None:
        """Writes down the settings, or raises `ElmoTasksError` if the folder has parts with others."""
        self.check_settings()
        if not (self.path / _MANIFEST).is_file():
            write_json(self.path / _MANIFEST, self.settings)

    def is_done(self, unit: Unit) -> bool:
        return (self.path / unit.part_name).is_file()

    def process(self, units: Sequence[Unit], function: TableFunction) -> Made:
        """Makes the parts that are missing.

        Raises:
            ElmoTasksError: a file or a row is not usable, or the folder's settings are others; parts that are made are
                kept, and the next call continues.
        """
        self.begin()
        missing = [unit for unit in units if not self.is_done(unit)]
        errors = 0
        with progress_bar() as bar:
            task = bar.add_task("parts", total=len(units), completed=len(units) - len(missing), note="")
            for unit, tables in read_units(missing):
                forget_words()  # or the last digits of a part would depend on the parts before it
                bar.update(task, note=f"{unit.source}, from line {unit.first:,}")
                errors += self._write(unit, map(function, tables))
                bar.advance(task)
        return Made(len(missing), errors)

    def _write(self, unit: Unit, results: Iterator[pa.Table]) -> int:
        """Writes the results of a unit; returns how many rows of them are errors."""
        first, errors = next(results), 0  # a unit has at least one table, perhaps without rows
        with atomic_write(self.path / unit.part_name) as stream:
            with _writer(stream, first.schema) as writer:
                for table in itertools.chain([first], results):
                    writer.write_table(table)
                    errors += len(table) - table["error"].null_count
            self.check_settings()  # another process may have begun with others at the same moment
        return errors

    def check_complete(self, units: Iterable[Unit]) -> None:
        """Raises `IncompleteError` if parts are missing, with the lines of the first ones."""
        missing = [unit for unit in units if not self.is_done(unit)]
        if missing:
            shown = "".join(f"\n  {unit.source}, from line {unit.first}" for unit in missing[:10])
            more = f"\n  and {len(missing) - 10} more" if len(missing) > 10 else ""
            raise IncompleteError(f"{self.path}: {counted(len(missing), 'part')} missing:{shown}{more}")


def _writer(stream: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    """Writes a part. Dictionaries and statistics of the numbers of vectors only take time, also when they are read."""
    plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
    return pq.ParquetWriter(stream, schema, compression="zstd", use_dictionary=plain, write_statistics=plain)
