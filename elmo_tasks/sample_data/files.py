"""Writing sample files, compressed or not."""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.files import atomic_write

SPLITS = ("train", "dev", "test")
CONLL_2012_SPLITS = {"train": "train", "dev": "development", "test": "test"}


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Writes lines to a UTF-8 file, atomically, and returns its path. Files that end in `.xz` are compressed."""
    content = "".join(f"{line}\n" for line in lines).encode()
    with atomic_write(path) as stream:
        stream.write(lzma.compress(content) if path.suffix == ".xz" else content)
    return path
