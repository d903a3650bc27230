"""JSON as this project writes it, and files of JSON that it or bilm-tf has written, checked against a type.

Files of JSON lines grow with a run: one record for each evaluation.
"""

from __future__ import annotations

import codecs
import functools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import pydantic
import pydantic_core

from elmo_tasks.errors import BEGIN_AGAIN, DataError, ElmoTasksError, RunError, one_line_of
from elmo_tasks.files.atomic import atomic_write, write_errors
from elmo_tasks.files.limits import ADVICE, MAX_JSON_BYTES, limit
from elmo_tasks.files.text import foreign_encoding, read_lines

_T = TypeVar("_T")
_adapter: Any = functools.lru_cache(pydantic.TypeAdapter)
_MAX_SHOWN = 5  # problems; a damaged vocabulary can have one for each word

Number = Annotated[
    float,
    pydantic.AllowInfNan(True),
    pydantic.BeforeValidator(lambda value: math.nan if value is None else value),
]
"""The type of a measured number in a file: null, which `json_text` writes for NaN and infinities, is read as NaN."""


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number (null stands for none)")


def _finite(text: str) -> float:
    return value if math.isfinite(value := float(text)) else _refuse(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text. If a key is there twice, Python would keep the last value."""
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"an object has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return value


_JSON = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_object)
_PLACE = re.compile(r"(.*) at line (\d+)( column \d+)", re.DOTALL)  # at the end of pydantic's messages


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON, on one line or indented. NaN and infinities become null, because JSON does not have them."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_without_nan(value), indent=indent, ensure_ascii=False)


def write_json(path: str | Path, value: Any) -> None:
    """Writes a value to a file as indented JSON (see `json_text`), atomically."""
    with atomic_write(path) as stream:
        stream.write(f"{json_text(value, indent=2)}\n".encode())


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_json(text: str, source: str | Path, expected: str, line: int | None = None) -> Any:
    """Parses a JSON text.

    Arguments:
        source: the name of the text's source in error messages.
        expected: what the text should be, for error messages.
        line: the number of the line, if the text is a single line of a file; None for a whole file.

    Raises:
        DataError: the text is not JSON; a whole number has thousands of digits, or the nesting is too deep; a number is
            NaN, infinite or too large for float64; an object has a key twice; or an escape sequence is half of a
            surrogate pair, which cannot be written as UTF-8.
    """
    text = text.removeprefix("\ufeff")
    try:
        pydantic_core.from_json(text)  # says where a fault is, and finds deep nesting and halves of surrogate pairs
        return _JSON.decode(text)
    except ValueError as error:
        problem, place = str(error), _PLACE.fullmatch(str(error))
        if place:
            problem, line = f"{place[1]} at{place[3]}", line or int(place[2])
        raise DataError(source, f"{problem}; expected {expected}", line) from None


def read_json(
    path: str | Path,
    kind: type[_T],
    expected: str,
    *,
    error: type[ElmoTasksError] = RunError,
    most: int = MAX_JSON_BYTES,
) -> _T:
    """Reads a JSON file as a value of a type, without conversions.

    Arguments:
        kind: the type, a pydantic model or any other that pydantic knows.
        expected: what the file should be, for error messages.
        error: the class of the error.
        most: the largest size in bytes, times `limits`' factor.

    Raises:
        RunError, or `error`: the file cannot be read, is too large, is not JSON, is nested too deeply, or is not of the
            type; a line for each problem.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise error(f"{path}: not a regular file; expected {expected}")
    try:
        if (size := path.stat().st_size) > limit(most):
            raise error(f"{path}: {size:,} bytes; expected {expected}, at most {limit(most):,} bytes; {ADVICE}")
        content = path.read_bytes()
    except FileNotFoundError:
        raise error(f"{path}: no such file; expected {expected}") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read ({problem.strerror}); expected {expected}") from None
    return from_json(content, kind, path, expected, error=error)


def from_json(
    content: bytes, kind: type[_T], name: str | Path, expected: str, *, error: type[ElmoTasksError] = RunError
) -> _T:
    """Like `read_json`, for bytes that are already read; error messages call them `name`."""
    if problem := foreign_encoding(content):
        raise error(f"{name}: {problem}")
    text = content.removeprefix(codecs.BOM_UTF8)
    try:
        value: _T = _adapter(kind).validate_json(text, strict=True)
        return value
    except pydantic.ValidationError as invalid:
        problems = invalid.errors()
        lines = []
        for each in problems[:_MAX_SHOWN]:
            # A file that is not JSON is named with the line.
            place = _PLACE.fullmatch(each["msg"]) if each["type"] == "json_invalid" else None
            location = f"{name}:{place[2]}" if place and isinstance(name, Path) else name
            lines.append(f"{location}: {_describe(each, expected)}")
        if len(problems) > len(lines):
            lines.append(f"{name}: {len(problems) - len(lines)} more problems")
        raise error("\n".join(lines)) from None


def _describe(problem: pydantic_core.ErrorDetails, expected: str) -> str:
    key = ".".join(str(step) for step in problem["loc"])
    if problem["type"] == "missing":
        return f"the key {key!r} is missing; expected {expected}"
    message = _PLACE.sub(r"\1 at\3", problem["msg"])
    if problem["type"] == "json_invalid":
        return f"{message}; expected {expected}"
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
    else:
        message += f"; got {one_line_of(problem['input'])}"
    return f"{key}: {message}" if key else f"{message}; expected {expected}"


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
