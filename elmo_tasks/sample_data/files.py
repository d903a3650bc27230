"""Writing sample files, atomically, compressed where their names say so."""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.files import atomic_write

SPLITS = ("train", "dev", "test")
CONLL_2012_SPLITS = {"train": "train", "dev": "development", "test": "test"}


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Writes the lines, in UTF-8; compressed where the name ends in `.xz`. Returns the path."""
    content = "".join(f"{line}\n" for line in lines).encode()
    with atomic_write(path) as stream:
        stream.write(lzma.compress(content) if path.suffix == ".xz" else content)
    return path
