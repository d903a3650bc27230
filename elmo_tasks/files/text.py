"""Reading files: compressed ones are decompressed on the way, and errors name the file and the line."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import lzma
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from elmo_tasks.errors import DataError, OnError
from elmo_tasks.files.limits import ADVICE, MAX_LINE_BYTES, bounded, limit, unpacked_text
from elmo_tasks.files.paths import is_clutter, is_stream, stored_file, why_no_file

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
STANDARD_INPUT = "standard input"
"""Its name in messages."""

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


@contextlib.contextmanager
def open_binary(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file for reading bytes, see `stored_file`. Those that end in .gz, .xz, .bz2 or .zip are decompressed.

    A zip archive must contain exactly one file.

    Raises:
        DataError: the file does not exist, the archive is damaged, or it does not contain exactly one file.
    """
    path = stored_file(Path(path))
    if not path.is_file() and not is_stream(path):
        raise DataError(path, why_no_file(path))
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        yield stream


@contextlib.contextmanager
def decompressed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Like `open_binary`, for a file that is already open, so that `raw.tell()` can show how far it has been read.

    Reading raises `DataError` when the content is far larger than the file; see `limits`.
    """
    with contextlib.ExitStack() as stack:
        if path.suffix == ".zip":
            try:
                archive = stack.enter_context(zipfile.ZipFile(raw))
                names = [name for name in archive.namelist() if not (name.endswith("/") or is_clutter(name))]
                if len(names) != 1:
                    raise DataError(path, f"the archive contains {len(names)} files; expected exactly one")
                content = stack.enter_context(archive.open(names[0]))
            except ZIP_ERRORS as error:
                raise DataError(path, f"the archive is damaged or cut short ({error})") from None
        elif opener := _OPENERS.get(path.suffix):
            content = stack.enter_context(opener(raw, "rb"))
        else:
            yield raw
            return
        yield bounded(content, unpacked_text(path.stat().st_size), lambda problem: DataError(path, problem))


def standard_input() -> IO[bytes]:
    """The bytes of standard input; raises `DataError` if it is closed."""
    if sys.stdin is None:
        raise DataError(STANDARD_INPUT, "it is closed; expected one input on each line")
    return sys.stdin.buffer


def read_lines(
    path: str | Path, *, columns: bool = False, on_error: OnError | None = None
) -> Generator[tuple[int, str], None, None]:
    """Yields (line number, line) for each line of a UTF-8 text file, compressed or not.

    The file is open until the last line or `close()`. An error keeps the variables of the functions that raised it, and
    so the file open: a function that has the lines in a variable closes them when an error leaves it.

    Numbers start at 1. Lines come without their line end, which is LF or CR LF; in a file without any LF, lines end in
    CR. A byte order mark at the beginning of a line is left out: files may have been joined.

    Arguments:
        columns: the lines hold tokens and labels, not text. Then a CR ends a line wherever it is, and a byte order
            mark is left out wherever it is.
        on_error: called with the error of a line that is not UTF-8, which then comes as a blank one; by default the
            error is raised.

    Raises:
        DataError: the file is missing or damaged, or a line is not UTF-8 or too long (the message names the line).
    """
    path = stored_file(Path(path))
    with open_binary(path) as stream:
        yield from decode_lines(stream, path, columns=columns, on_error=on_error)


class ByteLines(Protocol):
    """What `decode_lines` needs of a stream."""

    def readline(self, size: int, /) -> bytes:
        """The next line with its end, or a part of it of at most `size` bytes; empty at the end of the stream."""


def decode_lines(
    stream: ByteLines, name: str | Path, *, columns: bool = False, on_error: OnError | None = None, before: int = 0
) -> Iterator[tuple[int, str]]:
    """Like `read_lines`, for an open stream; error messages call it `name`.

    Arguments:
        before: how many lines of the file come before the stream; then it is not the beginning of a text.
    """
    number, most = before, limit(MAX_LINE_BYTES)
    try:
        while raw := stream.readline(most + 1):
            if len(raw) > most:
                remedy = f"convert line ends in CR with: {CR_TO_LF}" if b"\r" in raw else ADVICE
                raise DataError(name, f"the line has more than {most:,} bytes; {remedy}", number + 1)
            if number == 0 and (problem := foreign_encoding(raw)):
                raise DataError(name, problem)
            number += 1
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                fault = _not_utf8(error, name, number, in_cr=columns or (number == 1 and raw[-1:] != b"\n"))
                if on_error is None:
                    raise fault from None
                on_error(fault)
                text = ""
            if text.isascii() and "\r" not in text:  # almost every line
                yield number, text.rstrip("\n")
                continue
            ends_in_cr = columns or (number == 1 and not text.endswith("\n"))
            for part in text.rstrip("\r\n").split("\r") if ends_in_cr else [text.rstrip("\r\n")]:
                yield number, part.replace(BYTE_ORDER_MARK, "") if columns else part.removeprefix(BYTE_ORDER_MARK)
                number += 1
            number -= 1
    except DAMAGE_ERRORS as error:
        raise DataError(name, f"the compressed file is damaged or cut short ({error})", number + 1) from None


def _not_utf8(error: UnicodeDecodeError, name: str | Path, number: int, *, in_cr: bool) -> DataError:
    """The error for a line, or for one of several if they end in CR, with the number of the first one."""
    byte, before = error.object[error.start], error.object[: error.start]
    if in_cr:
        number, before = number + before.count(b"\r"), before[before.rfind(b"\r") + 1 :]
    problem = f"byte 0x{byte:02x} at column {len(before) + 1} is not UTF-8; expected UTF-8 text"
    if _BINARY.search(error.object):
        problem += ", and the file seems to be binary: export it as text, such as word vectors with binary=False"
    return DataError(name, problem, number)


def foreign_encoding(content: bytes) -> str | None:
    """What is wrong with a text file that begins with these bytes if it is UTF-16 or UTF-32; None if it is neither."""
    if (name := wide_encoding(content)) is None:
        return None
    return f"the file is {name}; expected UTF-8. Convert it with: iconv -f {name} -t UTF-8 FILE > NEW_FILE"


def wide_encoding(content: bytes) -> str | None:
    """The encoding of a text file that begins with these bytes if it is UTF-16 or UTF-32, with or without a mark."""
    name = next((name for mark, name in _FOREIGN_MARKS.items() if content.startswith(mark)), None)
    zeros = [content[first:400:4].count(0) for first in range(4)]  # many, also without a mark
    if name is None and sum(zeros) > max(1, len(content[:400]) * 2 // 5) and not _BINARY.search(content, 0, 400):
        size = 32 if min(zeros[1], zeros[2]) > max(zeros) / 2 else 16
        name = f"UTF-{size}{'BE' if zeros[0] > zeros[3] else 'LE'}"
    return name
