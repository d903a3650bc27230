"""Reading and writing files: compressed files are decompressed while reading, and writes are atomic."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from elmo_tasks.errors import DataError

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}

# The exceptions that reading a damaged compressed file can raise.
DAMAGE_ERRORS = (EOFError, OSError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)

# An escape sequence in a JSON string: a surrogate pair, half of one (group "half"), or any other.
_JSON_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


@contextlib.contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file for reading bytes. Files that end in .gz, .xz, .bz2 or .zip are decompressed.

    A zip archive must contain exactly one file.

    Raises:
        DataError: the file does not exist, the archive is damaged, or it does not contain exactly one file.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(path, "no such file")
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        yield stream


@contextlib.contextmanager
def decompressed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Like `open_binary`, for a file that is already open, so that `raw.tell()` can show how far it has been read."""
    if path.suffix == ".zip":
        try:
            archive = zipfile.ZipFile(raw)
        except zipfile.BadZipFile as error:
            raise DataError(path, f"the archive is damaged or cut short ({error})") from None
        with archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise DataError(path, f"the archive contains {len(names)} files; wanted exactly one")
            with archive.open(names[0]) as stream:
                yield stream
    elif opener := _OPENERS.get(path.suffix):
        with opener(raw, "rb") as stream:
            yield stream
    else:
        yield raw


def plain_name(path: Path) -> str:
    """The name of a file without the suffix of its compression."""
    return path.stem if path.suffix in _OPENERS or path.suffix == ".zip" else path.name


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line of a UTF-8 text file, compressed or not.

    Numbers start at 1. Lines come without their line end.

    Raises:
        DataError: the file is missing or damaged, or a line is not UTF-8 (the message names the line).
    """
    with open_binary(path) as stream:
        yield from decode_lines(stream, path)


def decode_lines(stream: Iterable[bytes], name: str | Path) -> Iterator[tuple[int, str]]:
    """Like `read_lines`, for an open stream; error messages call it `name`."""
    number = 0
    try:
        for number, raw in enumerate(stream, start=1):
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        problem = f"byte 0x{byte:02x} at column {error.start + 1} is not UTF-8; wanted UTF-8 text"
        raise DataError(name, problem, number) from None
    except DAMAGE_ERRORS as error:
        raise DataError(name, f"the compressed file is damaged or cut short ({error})", number + 1) from None


def parse_json(text: str, source: str | Path, wanted: str, line: int | None = None) -> Any:
    """Parses a JSON text.

    Arguments:
        source: the name of the text's source in error messages.
        wanted: what the text should be, for error messages.
        line: the number of the line, if the text is a single line of a file; None for a whole file.

    Raises:
        DataError: the text is not JSON; Python cannot read it, because a number has thousands of digits or the nesting
            is too deep; or an escape sequence is half of a surrogate pair, which cannot be written as UTF-8.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(source, f"{error.msg} at column {error.colno}; wanted {wanted}", line or error.lineno) from None
    except ValueError:
        raise DataError(source, f"a whole number has too many digits; wanted {wanted}", line) from None
    except RecursionError:
        raise DataError(source, f"lists or objects are nested too deeply; wanted {wanted}", line) from None
    for escape in _JSON_ESCAPE.finditer(text):
        if escape["half"]:
            column = escape.start() - text.rfind("\n", 0, escape.start())
            problem = f"\\{escape['half']} at column {column} is half of a surrogate pair; wanted both halves"
            raise DataError(source, problem, line or text.count("\n", 0, escape.start()) + 1)
    return value


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


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file in the folder of `path` for writing bytes. At the end of the block it is moved to `path`.

    Readers see either the old or the new content, never a part of it. After an error or a crash, the old file remains.
    """
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Like `atomic_write`, for libraries that need the name of a file: yields a temporary path in the same folder."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp creates files that only their owner can read; set the usual permissions of a new file.
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Like `atomic_write`, for a folder: yields an empty temporary folder that is renamed to `path` at the end.

    If another process has made the folder in the meantime, that folder is kept and this one is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        try:
            os.rename(temporary, path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def write_json(path: str | Path, value: Any) -> None:
    """Writes a value to a file as indented JSON, atomically."""
    with atomic_write(path) as stream:
        stream.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def cache_folder() -> Path:
    """The folder for cached data: `$ELMO_TASKS_CACHE`, or `elmo-tasks` in the user's cache folder."""
    if chosen := os.environ.get("ELMO_TASKS_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "elmo-tasks"
