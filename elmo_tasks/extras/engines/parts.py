"""A folder of Parquet files, one for each unit of the input, that several processes may fill together.

_manifest.json    the settings that all parts were made with, so that no part is made with others
NAME-LINE-DIGEST.parquet    the results of a unit; it appears when it is complete

The readers of folders of Parquet files skip names that begin with `_`. A unit is a range of lines of a text or JSON
lines file, of about a million tokens; a small file is one unit. Only the content of files decides where they are cut,
so that all machines find the same units.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from elmo_tasks.elmo.fast import forget_words
from elmo_tasks.errors import DataError, ElmoTasksError, IncompleteError, counted, some_of
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.limits import MAX_LINE_BYTES, limit
from elmo_tasks.files.paths import JSON_LINES, plain_name, refuse_stream
from elmo_tasks.files.text import DAMAGE_ERRORS, decode_lines, open_binary
from elmo_tasks.predictors.inputs import find_files
from elmo_tasks.progress import progress_bar
from elmo_tasks.text.prose import looks_like, warn_of_no_text

logger = logging.getLogger(__name__)

_MANIFEST = "_manifest.json"
UNIT_TOKENS = 1_000_000
_BYTES_PER_TOKEN = 6
_TABLE_BYTES = 400_000  # of text, in a table
_NO_TABLE = ", or JSON lines, such as those of pandas: to_json(FILE, orient='records', lines=True)"

Kind = Literal["text", "json"]


@dataclasses.dataclass(frozen=True)
class Unit:
    """A piece of a file.

    Attributes:
        path: the file.
        source: its name in the results, relative to the folder that all files have in common.
        kind: what the file holds.
        start, end: the bytes of the decompressed file. The end is exclusive.
        first: the number of its first line, from 1.
        digest: identifies the content, together with the source and the range.
    """

    path: Path
    source: str
    kind: Kind
    start: int
    end: int
    first: int
    digest: str

    @property
    def part_name(self) -> str:
        """The name of the file with the unit's results."""
        return f"{Path(self.source).name}-{self.first:012}-{self.digest[:16]}.parquet"


def find_units(
    inputs: Sequence[str | Path],
    *,
    tokens: int = UNIT_TOKENS,
    tokenized: bool = False,
    output: str | Path | None = None,
) -> Iterator[Unit]:
    """The units of all files that the inputs name, in the order of their names; see `find_files`.

    Every file is read once, for a digest of its content.

    Arguments:
        tokens: the approximate number of tokens of a unit.
        tokenized: whether lines of text hold tokens; then files are not checked for being something else.
        output: see `find_files`.

    Raises:
        DataError: a file is missing or damaged, or is data of another kind.
    """
    for source, path in find_files(inputs, output).items():
        refuse_stream(path)
        yield from _line_units(path, source, tokens * _BYTES_PER_TOKEN, tokenized)


def _line_units(path: Path, source: str, size: int, tokenized: bool) -> Iterator[Unit]:
    start, first, is_blank = 0, 1, True
    kind: Kind | None = None
    with _opened(path) as stream:
        while content := stream.read(size) + stream.readline(limit(MAX_LINE_BYTES) + 1):  # whole lines
            kind = kind or _kind(path, content, tokenized)
            end = start + len(content)
            digest = hashlib.sha256(f"{source}:{start}:".encode() + content).hexdigest()
            yield Unit(path, source, kind, start, end, first, digest)
            start, first = end, first + content.count(b"\n")
            is_blank = is_blank and not content.strip()
    if is_blank:
        warn_of_no_text(path, first - 1)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with open_binary(path) as stream:
        try:
            yield stream
        except DAMAGE_ERRORS as error:
            raise DataError(path, f"the compressed file is damaged or cut short ({error})") from None


def _kind(path: Path, content: bytes, tokenized: bool) -> Kind:
    """What a file that begins with these bytes holds; raises `DataError` if it is neither text nor JSON lines."""
    # Lines that are not UTF-8 are found when they are read.
    lines = (line for _, line in decode_lines(io.BytesIO(content), path, on_error=lambda error: None))
    first = next(filter(str.strip, lines), "")
    if not tokenized and (found := looks_like(path, first, json_lines=True)):
        raise DataError(path, f"looks like {found}{_NO_TABLE if found.startswith('a table') else ''}")
    return "json" if first.lstrip().startswith("{") or plain_name(path).lower().endswith(JSON_LINES) else "text"


def read_units(units: Iterable[Unit]) -> Iterator[tuple[Unit, Iterator[pa.Table]]]:
    """Each unit with its tables, which must be used before the next unit is asked for.

    A unit has at least one table. A table has a row for each line that is not blank: `source`, `line`, `error` (why the
    line cannot be read, otherwise null), and `text`, or `json` with the line.

    Raises (while tables are read):
        DataError: a file is missing or damaged, or changed since its units were found.
    """
    for path, group in itertools.groupby(units, key=lambda unit: unit.path):
        position = 0
        with _opened(path) as stream:
            for unit in group:
                if stream.seekable():
                    stream.seek(unit.start)
                else:
                    while position < unit.start:  # at the end, the digest differs
                        position += len(stream.read(min(unit.start - position, 1 << 20))) or unit.start
                content = stream.read(unit.end - unit.start)
                position = unit.end
                if hashlib.sha256(f"{unit.source}:{unit.start}:".encode() + content).hexdigest() != unit.digest:
                    raise DataError(path, "the file has changed since this command began; start it again")
                yield unit, _line_tables(unit, content)


def _line_tables(unit: Unit, content: bytes) -> Iterator[pa.Table]:
    schema = pa.schema(
        [("source", pa.string()), ("line", pa.int64()), (unit.kind, pa.string()), ("error", pa.string())]
    )
    rows: list[dict[str, Any]] = []
    errors: list[DataError] = []
    size = 0
    lines = decode_lines(io.BytesIO(content), unit.path, on_error=errors.append, before=unit.first - 1)
    for number, line in lines:
        if errors or line.strip():
            error = str(errors.pop()) if errors else None
            rows.append({"source": unit.source, "line": number, unit.kind: None if error else line, "error": error})
            size += len(line)
        if size >= _TABLE_BYTES:
            yield pa.Table.from_pylist(rows, schema)
            rows, size = [], 0
    yield pa.Table.from_pylist(rows, schema)


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

    def is_done(self, unit: Unit) -> bool:
        return (self.path / unit.part_name).is_file()

    def process(self, units: Sequence[Unit], function: TableFunction) -> int:
        """Makes the parts that are missing; returns how many of their rows have an error instead of results.

        Raises:
            ElmoTasksError: a file or a row is not usable, or the folder's settings are others; parts that are made are
                kept, and the next call continues.
        """
        self.check_settings()
        missing = [unit for unit in units if not self.is_done(unit)]
        errors = 0
        with progress_bar() as bar:
            task = bar.add_task("parts", total=len(units), completed=len(units) - len(missing), note="")
            for unit, tables in read_units(missing):
                forget_words()  # or the last digits of a part would depend on the parts before it
                bar.update(task, note=f"{unit.source}, from line {unit.first:,}")
                errors += self._write(unit, map(function, tables))
                bar.advance(task)
        return errors

    def _write(self, unit: Unit, results: Iterator[pa.Table]) -> int:
        """Writes the results of a unit; returns how many rows of them are errors."""
        first, errors = next(results), 0  # a unit has at least one table, perhaps without rows
        if not (self.path / _MANIFEST).is_file():  # not before, because settings may be wrong
            write_json(self.path / _MANIFEST, self.settings)
        with atomic_write(self.path / unit.part_name) as stream:
            # Dictionaries and statistics of the numbers of vectors only take time, also when they are read.
            plain = [field.name for field in first.schema if not pa.types.is_nested(field.type)]
            settings = {"compression": "zstd", "use_dictionary": plain, "write_statistics": plain}
            with pq.ParquetWriter(stream, first.schema, **settings) as writer:
                for table in itertools.chain([first], results):
                    writer.write_table(table)
                    errors += len(table) - table["error"].null_count
            self.check_settings()  # another process may have begun with others at the same moment
        return errors

    def check_others(self, units: Iterable[Unit], *, remove: bool = False) -> None:
        """Raises `ElmoTasksError` if there are parts of none of the units, or removes them with a warning.

        Their file has changed since they were made, or is gone, or was never among these files.
        """
        others = sorted({path.name for path in self.path.glob("*.parquet")} - {unit.part_name for unit in units})
        if not others:
            return
        found = f"{self.path}: {counted(len(others), 'part is', 'parts are')} of other files, or of files as they were"
        if not remove:
            remedy = "--remove-others removes them; or choose another folder, or name these files too"
            raise IncompleteError(f"{found}; {remedy}: {some_of(others)}")
        for name in others:
            (self.path / name).unlink(missing_ok=True)  # another process may have removed it
        logger.warning("%s; removed: %s", found, some_of(others))

    def check_complete(self, units: Iterable[Unit]) -> None:
        """Raises `IncompleteError` if parts are missing, with the lines of the first ones."""
        missing = [unit for unit in units if not self.is_done(unit)]
        if missing:
            shown = "".join(f"\n  {unit.source}, from line {unit.first}" for unit in missing[:10])
            more = f"\n  and {len(missing) - 10} more" if len(missing) > 10 else ""
            raise IncompleteError(f"{self.path}: {counted(len(missing), 'part')} missing:{shown}{more}")
