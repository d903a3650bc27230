"""The cache folder: its kinds of data, what they take, and how they are removed.

The layers of biLMs have locks of their own, see `elmo.layer_store`. All other kinds are files and folders that are
named by a hash. A process that uses a kind holds a shared lock on its folder until it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from pathlib import Path

from elmo_tasks.errors import CacheError
from elmo_tasks.files.paths import local_path

KINDS = ("datasets", "word_vectors", "corpora", "archives", "downloads")  # all but the layers

# Nothing else is counted or removed: the cache folder may be any folder that the user names.
_ENTRY = re.compile(r"[0-9a-f]{64}(\.\d+)?(\.v\d+)?(\.arrow|\.json|\.pieces)?|\.elmo-tasks\..*\.tmp")
_held: dict[Path, int] = {}  # open folders with a shared lock


def cache_folder() -> Path:
    """The folder for cached data: `$ELMO_TASKS_CACHE`, or `elmo-tasks` in the user's cache folder."""
    if chosen := os.environ.get("ELMO_TASKS_CACHE"):
        return local_path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "elmo-tasks"


def used_cache(kind: str) -> Path:
    """The folder of a kind, made if it is missing. Until this process ends, `clear` in other processes refuses it."""
    folder = cache_folder() / kind
    with contextlib.suppress(OSError):  # a folder of another user, or without locks; what is wrong shows in its use
        folder.mkdir(parents=True, exist_ok=True)
        if folder not in _held:
            _held[folder] = os.open(folder, os.O_RDONLY)
            fcntl.flock(_held[folder], fcntl.LOCK_SH)
    return folder


def usage(kind: str) -> tuple[int, int]:
    """How many data sets, archives and so on there are of a kind, and their bytes."""
    entries = _entries(kind)
    return sum(path.is_dir() or path.suffix == ".arrow" for path in entries), sum(map(folder_size, entries))


def clear(kind: str) -> tuple[int, int]:
    """Removes all of a kind. Returns what `usage` did.

    Raises:
        CacheError: a running process uses the kind, or locks do not work, or something cannot be removed.
    """
    freed = usage(kind)
    if not (entries := _entries(kind)):
        return freed
    folder = cache_folder() / kind
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path in entries:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    except BlockingIOError:
        raise CacheError(f"{folder}: a running process uses it; try again when it has ended") from None
    except OSError as error:
        raise CacheError(f"{folder}: cannot be removed: {error.strerror}") from None
    finally:
        os.close(handle)
    return freed


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


def _entries(kind: str) -> list[Path]:
    folder = cache_folder() / kind
    return sorted(path for path in folder.glob("*") if _ENTRY.fullmatch(path.name)) if folder.is_dir() else []
