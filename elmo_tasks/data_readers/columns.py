"""Lines of columns that are separated by spaces and tabs."""

from __future__ import annotations

import re

_SEPARATOR = re.compile(r"[ \t]+")  # not every whitespace: a token may hold a no-break space


def split_columns(line: str) -> list[str]:
    """The columns of a line; none where it has nothing but spaces and tabs."""
    text = line.strip(" \t")
    return _SEPARATOR.split(text) if text else []
