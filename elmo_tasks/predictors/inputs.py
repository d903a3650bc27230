"""Inputs for predictors, read line by line from a file or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.errors import DataError
from elmo_tasks.files import decode_lines, parse_json, read_lines

InputFormat = Literal["auto", "text", "jsonl"]

STANDARD_INPUT = "-"


def source_name(source: str | Path) -> str:
    """The name of a source in messages."""
    return "standard input" if str(source) == STANDARD_INPUT else str(source)


def read_inputs(source: str | Path, format: InputFormat = "auto") -> Iterator[dict[str, Any] | None]:
    """Yields one input for every line, None for a blank one, so that an input has the number of its line.

    Arguments:
        source: a file, compressed or not, or `-` for standard input.
        format: `text`: a line is a document or a paragraph and becomes `{"text": line}`; `jsonl`: a line is a JSON
            object; `auto`: `jsonl` if the first line that is not blank begins with a brace, otherwise `text`.

    Raises:
        DataError: the file does not exist, or a line is not UTF-8 or not a JSON object; source and line are named.
    """
    wanted = "a JSON object on each line (or, for raw text, the format 'text')"
    name = source_name(source)
    lines = decode_lines(sys.stdin.buffer, name) if str(source) == STANDARD_INPUT else read_lines(source)
    for number, line in lines:
        if not line.strip():
            yield None
            continue
        if format == "auto":
            format = "jsonl" if line.lstrip().startswith("{") else "text"
        value = {"text": line} if format == "text" else parse_json(line, name, wanted, number)
        if not isinstance(value, dict):
            raise DataError(name, f"a JSON {type(value).__name__}; wanted {wanted}", number)
        yield value
