"""Paths as people write them (`~` is the home folder, a URL is refused), and what kind of file they name."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TypeVar

from elmo_tasks.errors import DataError, check_argument

COMPRESSIONS = (".gz", ".xz", ".bz2", ".zip")
_CLUTTER = (".DS_Store", "__MACOSX", "Thumbs.db", "desktop.ini")

_NameT = TypeVar("_NameT", str, Path)

# `pathlib` makes one slash of two. `hub:` may be followed by the path of a folder.
_URL = re.compile(r"(?!hub:)([A-Za-z][A-Za-z0-9+.-]+):/+")


def local_path(name: str | Path) -> Path:
    """The path of a file or folder on this machine.

    Raises:
        ArgumentError: it is something else than a path.
        DataError: it is a URL.
    """
    check_argument("a path", name, (str, os.PathLike), "a string or a pathlib.Path")
    path = os.path.expanduser(name)
    if (url := _URL.match(path)) and not os.path.exists(path):
        problem = "is a URL; expected the path of a local file or folder"
        remedy = f"Write it as /{path[url.end() :]}" if url[1].lower() == "file" else "Download it, and give its path"
        hub = ". Data sets of the Hugging Face hub are read by hub:NAME" if "huggingface.co" in path else ""
        raise DataError(_URL.sub(r"\1://", path, count=1), f"{problem}. {remedy}{hub}")
    return Path(path)


def matching_paths(pattern: str | Path) -> list[Path]:
    """What a path, or a pattern with `*`, `?`, `[ab]` or `**` (any folders), names; in the order of the names."""
    path = local_path(pattern)
    # The name of a file may contain brackets.
    return [path] if path.exists() else sorted(map(Path, glob.glob(str(path), recursive=True)))


def each_once(names: Iterable[_NameT]) -> list[_NameT]:
    """The names without later ones of the same files, such as `../a/x.txt` or a link to it after `x.txt`."""
    found: dict[str, _NameT] = {}
    for name in names:
        found.setdefault(os.path.realpath(os.path.expanduser(name)), name)
    return list(found.values())


def is_stream(path: str | Path) -> bool:
    """Whether a path is a pipe or a device, such as `/dev/stdin` or a shell's `<(...)`, which can be read only once."""
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def why_no_file(path: str | Path) -> str:
    """What is wrong with a path that does not name a file."""
    return "is a folder; expected a file" if Path(path).is_dir() else "no such file"


def open_file_number(path: str | Path) -> int | None:
    """The number of the open file of this process that a path names, as `/dev/stdout` and `/dev/fd/5` do.

    What is behind it may be a file on disk, which is written where it is, as by a shell's `>>`, and not replaced.
    """
    found = re.fullmatch(r"/dev/(?:std(in|out|err)|fd/(\d+))|/proc/self/fd/(\d+)", str(path))
    return None if found is None else int(found[2] or found[3] or ("in", "out", "err").index(found[1]))


def refuse_stream(path: Path) -> None:
    """Raises a `DataError` for what can be read only once, where a file is read twice."""
    if is_stream(path):
        raise DataError(path, "is a pipe or a device, and this file is read twice; expected a file on disk")


def is_clutter(name: str | Path) -> bool:
    """Whether a file, by its path in a folder or an archive, is only what macOS or Windows keep about other files."""
    return any(part.startswith("._") or part in _CLUTTER for part in PurePosixPath(name).parts)


def plain_name(path: Path) -> str:
    """The name of a file without the suffix of its compression."""
    return path.stem if path.suffix in COMPRESSIONS else path.name


def stored_file(path: Path) -> Path:
    """The file that a path names; if it is not there, the same file uncompressed or with another compression.

    So `dev.json.xz` also names `dev.json`, and `dev.json` also names `dev.json.gz`. If there is none, the path is
    returned as it is. `~` is the home folder, and a URL is refused with a DataError.
    """
    path = local_path(path)
    if path.exists():
        return path
    plain = path.with_name(plain_name(path))
    others = (plain, *(plain.with_name(plain.name + suffix) for suffix in COMPRESSIONS))
    return next((other for other in others if other.is_file()), path)
