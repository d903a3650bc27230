"""What is to be predicted, read line by line from a file or from standard input."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.errors import DataError
from elmo_tasks.files import decode_lines, read_lines

InputFormat = Literal["auto", "text", "jsonl"]

STANDARD_INPUT = "-"


def source_name(source: str | Path) -> str:
    """What a source is called in messages."""
    return "standard input" if str(source) == STANDARD_INPUT else str(source)


def read_inputs(source: str | Path, format: InputFormat = "auto") -> Iterator[dict[str, Any]]:
    """Yields one input for every line, so that the number of an input is the number of its line; never holds them all.

    Arguments:
        source: a file, compressed or not, or `-` for standard input.
        format: `text`, where a line is a document or a paragraph and becomes `{"text": line}`; `jsonl`, where a line is
            a JSON object; `auto` takes the source for `jsonl` if its first line begins with a brace.

    Raises:
        DataError: there is no such file, a line is not UTF-8 or not a JSON object; source and line are named.
    """
    name = source_name(source)
    lines = decode_lines(sys.stdin.buffer, name) if str(source) == STANDARD_INPUT else read_lines(source)
    if format == "auto":
        first = list(itertools.islice(lines, 1))
        format = "jsonl" if first and first[0][1].lstrip().startswith("{") else "text"
        lines = itertools.chain(first, lines)
    for number, line in lines:
        yield {"text": line} if format == "text" else _parse(line, name, number)


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
    """The JSON object that a line holds."""
    wanted = "wanted a JSON object on each line (or, for raw text, the format 'text')"
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}" if line.strip() else "a blank line"
        raise DataError(name, f"{problem}; {wanted}", number) from None
    if not isinstance(value, dict):
        raise DataError(name, f"a JSON {type(value).__name__}; {wanted}", number)
    if "\\ud" in line.lower():
        _refuse_lone_surrogates(value, name, number)
    return value


def _refuse_lone_surrogates(value: dict[str, Any], name: str, number: int) -> None:
    """JSON can escape halves of characters, which no UTF-8 output could hold."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        code = f"\\u{ord(error.object[error.start]):04x}"
        raise DataError(name, f"{code} is half a character without its other half; wanted whole ones", number) from None
