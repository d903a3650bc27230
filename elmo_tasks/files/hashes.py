"""Hashes of files, which show whether two files are the same and whether one has changed."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path


def content_hash(path: str | Path) -> str:
    """The SHA-256 hash of a file as stored on disk, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def file_state(path: str | Path) -> tuple[int, ...]:
    """Numbers that change when a file is written or replaced. They show whether a result kept for it is out of date."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def kept_hash(path: Path) -> str:
    """The `content_hash` of a file, which a process reads once, and again only after it has changed."""
    return _kept_hash(path, file_state(path))


@functools.lru_cache(maxsize=32)
def _kept_hash(path: Path, state: tuple[int, ...]) -> str:
    return content_hash(path)
