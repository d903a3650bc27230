"""The sources of text: what `sources.json` says of them, and their files in clones of git repositories."""

from __future__ import annotations

import fnmatch
import logging
import lzma
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pydantic

from elmo_tasks.config.data_folder import DATA_VARIABLE, DEFAULT_DATA_FOLDER
from elmo_tasks.errors import DataError
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.text import open_binary

LIST = Path(__file__).with_name("sources.json")
_MAX_BYTES = 4 * 2**20  # larger files are left out, because some mirrors of repositories lack them

logger = logging.getLogger(__name__)


class Source(pydantic.BaseModel):
    """Files of one git repository at one commit, or of `$ELMO_TASKS_DATA` if it has no repository.

    Attributes:
        paths: patterns as of `fnmatch`, in which `*` also matches slashes.
        format: see `benchmarks.text.reading`.
        field: where JSON, tables and XML hold the text.
        licence_said: where the licence is said.
        megabytes: of the files read, before cleaning; `tokens` and `sha256` are those of the clean text of the last run
            with all sources. Null: not measured.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: Literal["books", "encyclopaedia", "news", "parliament and government", "science", "talk"]
    repository: str | None
    commit: str | None
    paths: tuple[str, ...]
    format: Literal["gutenberg", "lines", "documents", "json", "csv", "tsv", "xml"]
    field: str = ""
    licence: str
    licence_said: str
    megabytes: float | None = None
    tokens: int | None = None
    sha256: str | None = None


def read_sources(path: Path, names: Sequence[str] | None = None) -> list[Source]:
    """The sources in the order of the file; those with the names, if there are any.

    Raises:
        ElmoTasksError: the file is not a list of sources, or has no source with one of the names.
    """
    sources = read_json(path, list[Source], "a list of sources")
    if unknown := set(names or ()) - {source.name for source in sources}:
        known = ", ".join(source.name for source in sources)
        raise DataError(path, f"has no source {', '.join(sorted(unknown))}; expected some of {known}")
    return [source for source in sources if not names or source.name in names]


def files(source: Source, clones: Path) -> Iterator[tuple[str, bytes]]:
    """The paths and the decompressed contents of a source's files, in the order of their paths.

    Arguments:
        clones: the folder with the clones, `OWNER+NAME` or `OWNER+NAME/repo` each, bare or not. A missing one is cloned
            from GitHub.

    Raises:
        DataError: there is no such file, or git failed.
    """
    if source.repository is None:
        folder = Path(os.environ.get(DATA_VARIABLE, DEFAULT_DATA_FOLDER))
        found = sorted(path for pattern in source.paths for path in folder.glob(pattern))
        if not found:
            raise DataError(folder, f"has no file {' or '.join(source.paths)}, which the source {source.name} needs")
        for path in found:
            with open_binary(path) as stream:
                yield path.name, stream.read()
        return
    yield from _blobs(source, _clone(source.repository, clones), source.commit or "HEAD")


def _clone(repository: str, clones: Path) -> Path:
    clone = clones / repository.replace("/", "+")
    if not clone.exists():
        logger.info("Cloning %s", repository)
        _git("clone", "--quiet", "--bare", f"https://github.com/{repository}.git", str(clone))
    inner = clone / "repo"
    return inner if inner.exists() else clone


def _blobs(source: Source, clone: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    listing = _git("-C", str(clone), "ls-tree", "-r", "-l", "-z", commit).decode(errors="replace")
    chosen, missing = [], 0
    for entry in filter(None, listing.split("\0")):
        facts, path = entry.split("\t", 1)
        _, kind, name, size = facts.split()
        if kind == "blob" and any(fnmatch.fnmatchcase(path, pattern) for pattern in source.paths):
            if size.isdecimal() and int(size) < _MAX_BYTES:
                chosen.append((path, name))
            else:  # git writes BAD for the size of an object that it does not have
                missing += 1
    if missing:
        logger.info("%s: left out %d files, which are large or missing", source.name, missing)
    if not chosen:
        raise DataError(clone, f"has no file {' or '.join(source.paths)} at {commit}")
    command = ["git", "-C", str(clone), "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        for path, name in sorted(chosen):
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
            num_bytes = int(process.stdout.readline().split()[-1])
            content = process.stdout.read(num_bytes)
            process.stdout.read(1)  # the line end after it
            yield path, lzma.decompress(content) if path.endswith(".xz") else content
        process.stdin.close()


def _git(*arguments: str) -> bytes:
    result = subprocess.run(["git", *arguments], capture_output=True, check=False)
    if result.returncode:
        problem = result.stderr.decode(errors="replace").strip()
        raise DataError("git", f"failed: git {' '.join(arguments)}: {problem}")
    return result.stdout
