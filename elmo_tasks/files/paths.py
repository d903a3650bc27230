"""Paths as people write them (`~` is the home folder, a URL is refused), what they name, and whether it may be written.

Places that are written to are checked before anything is computed. Nothing is overwritten unasked.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from elmo_tasks.errors import DataError, ElmoTasksError, check_argument

COMPRESSIONS = (".gz", ".xz", ".bz2", ".zip")
JSON_LINES, JSON, HTML, TABLE = (".jsonl", ".jsonlines", ".ndjson", ".json"), (".json",), (".html", ".htm"), (".tsv",)
# Endings that say what a file holds.
_FORMATS = (
    *(*JSON_LINES, *JSON, *HTML, *TABLE, ".csv", ".xlsx", ".xls", ".ods", ".parquet", ".arrow", ".feather", ".db"),
    *(".sqlite", ".jsonnet", ".xml", ".yaml", ".yml", ".toml", ".conll", ".conllu", ".md", ".tex", ".pdf", ".png"),
    *(".jpg", ".svg", ".hdf5", ".h5", ".npz", ".npy", ".pt", ".pkl", ".safetensors"),
)
SEARCH = "trials.journal"
_MARKS = {"config.json": "a run", "study.json": "a study", SEARCH: "a search"}
_CLUTTER = (".DS_Store", "__MACOSX", "Thumbs.db", "desktop.ini")

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)

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
        raise DataError(f"{url[1]}://{path[url.end() :]}", f"{problem}. {remedy}{hub}")
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


def portable_name(name: str) -> str:
    """A name for a new file or folder that every system allows: Windows has no `a:b`, `a.`, `CON` or `nul.txt`."""
    name = _FORBIDDEN.sub("_", name).rstrip(". ")
    return f"_{name}" if _RESERVED.fullmatch(name) else name


def ends_in_slash(name: str | Path | None) -> bool:
    """Whether a name says by its end that it is that of a folder."""
    return str(name).endswith(("/", os.sep))


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


def check_ending(path: str | Path | None, endings: Sequence[str], advice: str = "") -> None:
    """Raises `ElmoTasksError` if the ending of a file's name says that it holds another format.

    Arguments:
        path: the file to write; None is standard output.
        endings: those of the format that is written, the usual one first; none for a folder. Endings that say nothing
            are taken, too.
        advice: how another format is written.
    """
    ending = "" if path is None else Path(path).suffix.lower()
    if ending in _FORMATS and ending not in endings:
        expected = f"a name that ends in {endings[0]}" if endings else "the name of a folder"
        more = f". {advice}" if advice else ""
        raise ElmoTasksError(f"{path}: cannot be written as {ending}; expected {expected}{more}")


def check_output(path: str | Path | None, *, force: bool, stream: bool = False, packed: bool = False) -> None:
    """Checks that a file can be written; None is standard output.

    Arguments:
        force: whether an existing file may be replaced.
        stream: whether the file is written from its beginning to its end, as devices and pipes can be.
        packed: whether the file is written compressed, as archives are.

    Raises:
        ElmoTasksError: the file exists and `force` is not set, or it is something other than a file, or its folder
            cannot be written to; or its name ends like a compressed file's, but it is written plain.
    """
    if path is None:
        return
    path = Path(path)
    is_open = open_file_number(path) is not None
    if is_open or (path.exists() and not path.is_file()):
        if stream and path.exists() and not path.is_dir():
            return
        raise ElmoTasksError(f"{path}: not a regular file; expected the name of a file to write")
    if path.suffix in COMPRESSIONS and not packed:
        raise ElmoTasksError(f"{path}: cannot be written compressed; expected a name without {path.suffix}")
    if path.exists() and not force:
        raise ElmoTasksError(f"{path}: the file exists; --force replaces it")
    check_folder(path.parent)


def check_kind(folder: str | Path, own: str = "", *, remedy: str) -> None:
    """Checks that a folder does not hold a run, a study or a search, unless the file `own` marks it.

    Raises:
        ElmoTasksError: it holds one; the message ends with the remedy.
    """
    for name, kind in _MARKS.items():
        if name != own and Path(folder, name).is_file():
            raise ElmoTasksError(f"{folder}: holds {kind} ({name}); {remedy}")


def check_folder(path: str | Path) -> None:
    """Checks that a folder can be written to, or be made; raises an `ElmoTasksError` that says why it cannot."""
    import tempfile  # takes a tenth of the time of --help

    path = Path(path).absolute()
    existing = next(each for each in (path, *path.parents) if each.exists())
    if not existing.is_dir():
        raise ElmoTasksError(f"{existing}: not a folder; expected one to write to")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise ElmoTasksError(f"{existing}: cannot be written to ({error.strerror})") from None
