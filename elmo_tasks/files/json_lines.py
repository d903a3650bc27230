"""JSON lines files that grow with a run: one record for each evaluation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from elmo_tasks.errors import RunError
from elmo_tasks.files.atomic import atomic_write, write_errors
from elmo_tasks.files.json_files import from_json, json_text
from elmo_tasks.files.tensor_files import BEGIN_AGAIN
from elmo_tasks.files.text import read_lines

_T = TypeVar("_T")


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Appends a record to a JSON lines file: the whole of it or, if it cannot be written (`WriteError`), nothing."""
    line = f"{json_text(record)}\n".encode()
    with write_errors(path, len(line)), path.open("ab", buffering=0) as stream:
        size = stream.tell()
        try:
            while line:
                line = line[stream.write(line) :]
            os.fsync(stream.fileno())  # a state that is saved later counts on it
        except OSError:
            stream.truncate(size)
            raise


def read_record(path: Path, number: int, kind: type[_T]) -> _T:
    """A record of a JSON lines file, counted from 1; raises `RunError` if it is missing, damaged or not of the type."""
    lines = path.read_bytes().splitlines() if path.is_file() else []
    if len(lines) < number:
        raise RunError(f"{path}: {len(lines)} lines; expected line {number}, the record of an evaluation")
    return from_json(lines[number - 1], kind, f"{path}:{number}", "the record of an evaluation")


def keep_lines(path: Path, count: int) -> None:
    """Cuts a JSON lines file after its first `count` records; a resumed run writes the later ones again.

    Raises:
        RunError: it has fewer, or is a link, whose file would be replaced.
    """
    if path.is_symlink():
        raise RunError(f"{path}: is a link; expected a file of the run")
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    if len(lines) < count:
        raise RunError(f"{path}: {len(lines)} lines; expected the records of {count} evaluations; {BEGIN_AGAIN}")
    with atomic_write(path) as stream:
        stream.writelines(lines[:count])


def read_records(path: Path, kind: type[_T], expected: str) -> Iterator[_T]:
    """Yields the records of a JSON lines file. `expected`: what each should be, for error messages.

    Raises:
        DataError: the file is missing, or is not text.
        RunError: a line is not of the type; it is named.
    """
    for number, line in read_lines(path):
        yield from_json(line.encode(), kind, f"{path}:{number}", expected)


def write_records(path: Path, records: Iterable[pydantic.BaseModel]) -> None:
    """Replaces a JSON lines file, atomically."""
    with atomic_write(path) as stream:
        stream.writelines(f"{record.model_dump_json()}\n".encode() for record in records)
