"""The cache folder, in which each kind of data has a folder, and hashes, which show whether a file has changed.

Whatever is removed from the cache is made again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from pathlib import Path

from elmo_tasks.files.paths import local_path


def cache_folder() -> Path:
    """The folder for cached data: `$ELMO_TASKS_CACHE`, or `elmo-tasks` in the user's cache folder."""
    if chosen := os.environ.get("ELMO_TASKS_CACHE"):
        return local_path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "elmo-tasks"


def used_cache(kind: str) -> Path:
    """The folder of a kind, such as `datasets`, made if it is missing."""
    folder = cache_folder() / kind
    with contextlib.suppress(OSError):  # what is wrong shows when something is written there
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def folder_size(path: Path) -> int:
    """The bytes of a file, or of all files in a folder. What vanishes in the meantime does not count."""
    size = 0
    for each in (path, *path.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            size += each.stat().st_size if each.is_file() else 0
    return size


def human_size(size: float) -> str:
    """A number of bytes in decimal units: 1.04 GB."""
    units = ["TB", "GB", "MB", "kB", "bytes"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop()
    return f"{size:.3g} {units[-1]}" if size < 999.5 else f"{size:.0f} {units[-1]}"


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


@functools.lru_cache
def _kept_hash(path: Path, state: tuple[int, ...]) -> str:
    return content_hash(path)
