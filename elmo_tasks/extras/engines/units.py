"""Cuts files into units of about a million tokens, by their content only, so that all machines find the same ones.

A unit is a range of lines of a text or JSON lines file. A small file is one unit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa

from elmo_tasks.errors import DataError
from elmo_tasks.files.limits import MAX_LINE_BYTES, limit
from elmo_tasks.files.text import DAMAGE_ERRORS, decode_lines, open_binary
from elmo_tasks.predictors.inputs import find_files
from elmo_tasks.text.prose import looks_like, warn_of_no_text

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
        yield from _line_units(path, source, tokens * _BYTES_PER_TOKEN, tokenized)


def _line_units(path: Path, source: str, size: int, tokenized: bool) -> Iterator[Unit]:
    start, first, is_blank = 0, 1, True
    kind: Kind | None = None
    with _opened(path) as stream:
        while content := _whole_lines(stream, size):
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


def _whole_lines(stream: IO[bytes], size: int) -> bytes:
    """The next `size` bytes of a stream, and the rest of their last line."""
    return stream.read(size) + stream.readline(limit(MAX_LINE_BYTES) + 1)


def _kind(path: Path, content: bytes, tokenized: bool) -> Kind:
    """What a file that begins with these bytes holds; raises `DataError` if it is neither text nor JSON lines."""
    lines = (line for _, line in decode_lines(io.BytesIO(content), path, on_error=_ignore))
    first = next(filter(str.strip, lines), "")
    if not tokenized and (found := looks_like(path, first, json_lines=True)):
        raise DataError(path, f"looks like {found}{_NO_TABLE if found.startswith('a table') else ''}")
    return "json" if first.lstrip().startswith("{") else "text"


def _ignore(error: DataError) -> None:
    """Lines that are not UTF-8 are found when they are read."""


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
                _skip(stream, position, unit.start)
                content = stream.read(unit.end - unit.start)
                position = unit.end
                if hashlib.sha256(f"{unit.source}:{unit.start}:".encode() + content).hexdigest() != unit.digest:
                    raise DataError(path, "the file has changed since this command began; start it again")
                yield unit, _line_tables(unit, content)


def _skip(stream: IO[bytes], position: int, target: int) -> None:
    if stream.seekable():
        stream.seek(target)
        return
    while position < target:
        position += len(stream.read(min(target - position, 1 << 20))) or target  # at the end, the digest differs


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
