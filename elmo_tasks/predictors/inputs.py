"""What is to be predicted, read line by line from a file or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.errors import DataError
from elmo_tasks.files import decode_lines, parse_json, read_lines

InputFormat = Literal["auto", "text", "jsonl"]

STANDARD_INPUT = "-"

_WANTED = "a JSON object on each line (or, for raw text, the format 'text')"


def source_name(source: str | Path) -> str:
    """What a source is called in messages."""
    return "standard input" if str(source) == STANDARD_INPUT else str(source)


def read_inputs(source: str | Path, format: InputFormat = "auto") -> Iterator[dict[str, Any] | None]:
    """Yields one input for every line, None for a blank one, so that an input has the number of its line.

    Never holds them all.

    Arguments:
        source: a file, compressed or not, or `-` for standard input.
        format: `text`, where a line is a document or a paragraph and becomes `{"text": line}`; `jsonl`, where a line is
            a JSON object; `auto` takes the source for `jsonl` if its first line that is not blank begins with a brace.

    Raises:
        DataError: there is no such file, a line is not UTF-8 or not a JSON object; source and line are named.
    """
    name = source_name(source)
    lines = decode_lines(sys.stdin.buffer, name) if str(source) == STANDARD_INPUT else read_lines(source)
    for number, line in lines:
        if not line.strip():
            yield None
            continue
        if format == "auto":
            format = "jsonl" if line.lstrip().startswith("{") else "text"
        yield {"text": line} if format == "text" else _parse(line, name, number)


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
    """The JSON object that a line holds."""
    value = parse_json(line, name, _WANTED, number)
    if not isinstance(value, dict):
        raise DataError(name, f"a JSON {type(value).__name__}; wanted {_WANTED}", number)
    return value
