"""Reading files: compressed ones are decompressed on the way, and errors name the file and the line."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import functools
import gzip
import hashlib
import json
import lzma
import math
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn, Protocol

from elmo_tasks.errors import DataError
from elmo_tasks.files.limits import ADVICE, MAX_JSON_DEPTH, MAX_LINE_BYTES, bounded, limit, unpacked_text
from elmo_tasks.files.paths import local_path

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
COMPRESSIONS = (*_OPENERS, ".zip")
STANDARD_INPUT = "standard input"
"""Its name in messages."""

_CLUTTER = (".DS_Store", "__MACOSX", "Thumbs.db", "desktop.ini")

# The exceptions that reading a damaged compressed file can raise.
DAMAGE_ERRORS = (EOFError, OSError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
# And those that opening a zip archive can raise: of its parts, some are encrypted or of a kind that Python cannot read.
ZIP_ERRORS = (*DAMAGE_ERRORS, NotImplementedError, RuntimeError, ValueError, struct.error)

BYTE_ORDER_MARK = "\ufeff"
_FOREIGN_MARKS = {  # the mark of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_BINARY = re.compile(rb"[\x01-\x08\x0e-\x1f]|\0{4}")  # in no encoding of a text
CR_TO_LF = "tr '\\r' '\\n' < FILE > NEW_FILE"


class _NotFinite(ValueError):
    """A number of a JSON text that JSON or float64 does not have; `args` has it as it is written."""


def _refuse(text: str) -> NoReturn:
    raise _NotFinite(text)


def _finite(text: str) -> float:
    return value if math.isfinite(value := float(text)) else _refuse(text)


_JSON = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_JSON_STRING = r'"(?:[^"\\]|\\.)*"'

# An escape sequence in a JSON string: a surrogate pair, half of one (group "half"), or any other.
_JSON_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


@contextlib.contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file for reading bytes, see `stored_file`. Those that end in .gz, .xz, .bz2 or .zip are decompressed.

    A zip archive must contain exactly one file.

    Raises:
        DataError: the file does not exist, the archive is damaged, or it does not contain exactly one file.
    """
    path = stored_file(Path(path))
    if not path.is_file() and not is_stream(path):
        raise DataError(path, "is a folder; expected a file" if path.is_dir() else "no such file")
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        yield stream


@contextlib.contextmanager
def decompressed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Like `open_binary`, for a file that is already open, so that `raw.tell()` can show how far it has been read.

    Reading raises `DataError` when the content is far larger than the file; see `limits`.
    """
    with contextlib.ExitStack() as stack:
        if path.suffix == ".zip":
            content = stack.enter_context(_only_member(raw, path))
        elif opener := _OPENERS.get(path.suffix):
            content = stack.enter_context(opener(raw, "rb"))
        else:
            yield raw
            return
        yield bounded(content, unpacked_text(path.stat().st_size), lambda problem: DataError(path, problem))


@contextlib.contextmanager
def _only_member(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """The content of the only file in a zip archive."""
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(raw))
            names = [name for name in archive.namelist() if not (name.endswith("/") or is_clutter(name))]
            if len(names) == 1:
                content = stack.enter_context(archive.open(names[0]))
        except ZIP_ERRORS as error:
            raise DataError(path, f"the archive is damaged or cut short ({error})") from None
        if len(names) != 1:
            raise DataError(path, f"the archive contains {len(names)} files; wanted exactly one")
        yield content


def standard_input() -> IO[bytes]:
    """The bytes of standard input; raises `DataError` if it is closed."""
    if sys.stdin is None:
        raise DataError(STANDARD_INPUT, "it is closed; wanted one input on each line")
    return sys.stdin.buffer


def is_stream(path: str | Path) -> bool:
    """Whether a path is a pipe or a device, such as `/dev/stdin` or a shell's `<(...)`, which can be read only once."""
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


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


def read_lines(path: str | Path, *, columns: bool = False) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line of a UTF-8 text file, compressed or not.

    Numbers start at 1. Lines come without their line end, which is LF or CR LF; in a file without any LF, lines end in
    CR. A byte order mark at the beginning of a line is left out: files may have been joined.

    Arguments:
        columns: the lines hold tokens and labels, not text. Then a CR ends a line wherever it is, and a byte order
            mark is left out wherever it is.

    Raises:
        DataError: the file is missing or damaged, or a line is not UTF-8 or too long (the message names the line).
    """
    path = stored_file(Path(path))
    with open_binary(path) as stream:
        yield from decode_lines(stream, path, columns=columns)


class ByteLines(Protocol):
    """What `decode_lines` needs of a stream."""

    def readline(self, size: int, /) -> bytes:
        """The next line with its end, or a part of it of at most `size` bytes; empty at the end of the stream."""


def decode_lines(stream: ByteLines, name: str | Path, *, columns: bool = False) -> Iterator[tuple[int, str]]:
    """Like `read_lines`, for an open stream; error messages call it `name`."""
    number, most = 0, limit(MAX_LINE_BYTES)
    try:
        while raw := stream.readline(most + 1):
            if len(raw) > most:
                remedy = f"convert line ends in CR with: {CR_TO_LF}" if b"\r" in raw else ADVICE
                raise DataError(name, f"the line has more than {most:,} bytes; {remedy}", number + 1)
            if number == 0 and (problem := foreign_encoding(raw)):
                raise DataError(name, problem)
            number += 1
            text = raw.decode()
            if text.isascii() and "\r" not in text:  # almost every line
                yield number, text.rstrip("\n")
                continue
            ends_in_cr = columns or (number == 1 and not text.endswith("\n"))
            for part in text.rstrip("\r\n").split("\r") if ends_in_cr else [text.rstrip("\r\n")]:
                yield number, part.replace(BYTE_ORDER_MARK, "") if columns else part.removeprefix(BYTE_ORDER_MARK)
                number += 1
            number -= 1
    except UnicodeDecodeError as error:
        byte, before = error.object[error.start], error.object[: error.start]
        if columns or (number == 1 and error.object[-1:] != b"\n"):
            number, before = number + before.count(b"\r"), before[before.rfind(b"\r") + 1 :]
        problem = f"byte 0x{byte:02x} at column {len(before) + 1} is not UTF-8; wanted UTF-8 text"
        raise DataError(name, problem, number) from None
    except DAMAGE_ERRORS as error:
        raise DataError(name, f"the compressed file is damaged or cut short ({error})", number + 1) from None


def foreign_encoding(content: bytes) -> str | None:
    """What is wrong with a text file that begins with these bytes if it is UTF-16 or UTF-32; None if it is neither."""
    name = next((name for mark, name in _FOREIGN_MARKS.items() if content.startswith(mark)), None)
    zeros = [content[place:400:4].count(0) for place in range(4)]  # many, also without a mark
    if name is None and sum(zeros) > max(1, len(content[:400]) * 2 // 5) and not _BINARY.search(content, 0, 400):
        size = 32 if min(zeros[1], zeros[2]) > max(zeros) / 2 else 16
        name = f"UTF-{size}{'BE' if zeros[0] > zeros[3] else 'LE'}"
    if name is None:
        return None
    return f"the file is {name}; expected UTF-8. Convert it with: iconv -f {name} -t UTF-8 FILE > NEW_FILE"


def parse_json(text: str, source: str | Path, wanted: str, line: int | None = None) -> Any:
    """Parses a JSON text.

    Arguments:
        source: the name of the text's source in error messages.
        wanted: what the text should be, for error messages.
        line: the number of the line, if the text is a single line of a file; None for a whole file.

    Raises:
        DataError: the text is not JSON; Python cannot read it, because a number has thousands of digits or the nesting
            is too deep; a number is NaN, infinite or too large for float64; or an escape sequence is half of a
            surrogate pair, which cannot be written as UTF-8.
    """
    text = text.removeprefix("\ufeff")
    try:
        value = _JSON.decode(text)
        if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _is_deep(value):
            raise RecursionError
    except json.JSONDecodeError as error:
        raise DataError(source, f"{error.msg} at column {error.colno}; wanted {wanted}", line or error.lineno) from None
    except _NotFinite as error:
        (number,) = error.args
        found = next(each for each in re.finditer(f"{_JSON_STRING}|{re.escape(number)}", text) if each[0] == number)
        column = found.start() - text.rfind("\n", 0, found.start())
        problem = f"{number} at column {column}; expected a finite number, or null where there is none"
        raise DataError(source, problem, line or text.count("\n", 0, found.start()) + 1) from None
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


def _is_deep(value: Any) -> bool:
    """Whether lists and objects are nested so deeply that functions which call themselves may fail."""
    level = [value]
    for _ in range(MAX_JSON_DEPTH + 1):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for items in inner for item in items if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


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


def cache_folder() -> Path:
    """The folder for cached data: `$ELMO_TASKS_CACHE`, or `elmo-tasks` in the user's cache folder."""
    if chosen := os.environ.get("ELMO_TASKS_CACHE"):
        return local_path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "elmo-tasks"
