"""Checks of the places that are written to, before anything is computed. Nothing is overwritten unasked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.paths import COMPRESSIONS, open_file_number

JSON_LINES, JSON, HTML, TABLE = (".jsonl", ".jsonlines", ".ndjson", ".json"), (".json",), (".html", ".htm"), (".tsv",)
TABLES = (".csv", ".tsv", ".xlsx", ".parquet")
# Endings that say what a file holds.
_FORMATS = (
    *(*JSON_LINES, *JSON, *HTML, *TABLE, ".csv", ".xlsx", ".xls", ".ods", ".parquet", ".arrow", ".feather", ".db"),
    *(".sqlite", ".jsonnet", ".xml", ".yaml", ".yml", ".toml", ".conll", ".conllu", ".md", ".tex", ".pdf", ".png"),
    *(".jpg", ".svg", ".hdf5", ".h5", ".npz", ".npy", ".pt", ".pkl", ".safetensors"),
)


def check_ending(path: str | Path | None, endings: Sequence[str], advice: str = "") -> None:
    """Raises `ElmoTasksError` if the ending of a file's name says that it holds another format.

    Arguments:
        path: the file to write; None is standard output.
        endings: those of the format that is written, the usual one first. Endings that say nothing are taken, too.
        advice: how another format is written.
    """
    ending = "" if path is None else Path(path).suffix.lower()
    if ending in _FORMATS and ending not in endings:
        more = f". {advice}" if advice else ""
        raise ElmoTasksError(f"{path}: cannot be written as {ending}; expected a name that ends in {endings[0]}{more}")


def is_table(path: str | Path | None) -> bool:
    """Whether a file that is written is a table, by its name."""
    return str(path).lower().endswith(TABLES)


def check_output(path: str | Path | None, *, force: bool, stream: bool = False, packed: bool = False) -> None:
    """Checks that a file can be written; None is standard output.

    Arguments:
        force: whether an existing file may be replaced.
        stream: whether the file is written from its beginning to its end, as devices and pipes can be.
        packed: whether the file is written compressed, as archives are.

    Raises:
        ElmoTasksError: the file exists and `force` is not set, or it is something other than a file, or its folder
            cannot be written to; or its name is that of a compressed file, and it is not one.
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


SEARCH = "trials.journal"
_MARKS = {"config.json": "a run", "study.json": "a study", SEARCH: "a search"}


def check_kind(folder: str | Path, own: str = "", *, remedy: str) -> None:
    """Checks that a folder does not hold a run, a study or a search, unless the file `own` marks it.

    Raises:
        ElmoTasksError: it holds one; the message ends with the remedy.
    """
    for name, kind in _MARKS.items():
        if name != own and Path(folder, name).is_file():
            raise ElmoTasksError(f"{folder}: holds {kind} ({name}); {remedy}")


def check_folder(path: str | Path) -> None:
    """Checks that a folder can be written to, or be made.

    Raises:
        ElmoTasksError: it cannot; the message says why.
    """
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
