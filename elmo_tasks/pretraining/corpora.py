"""Finding a corpus's files and streaming their text, in chunks of whole lines that are known to be text.

A chunk holds about 1 MiB, so that a corpus may be far larger than memory.
"""

from __future__ import annotations

import codecs
import dataclasses
import glob
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from elmo_tasks.errors import DataError
from elmo_tasks.files import DAMAGE_ERRORS, decompressed

_CHUNK_BYTES = 1 << 20
_MAX_LINE_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive whole lines of a file.

    Attributes:
        text: the lines, with their line ends.
        num_bytes: how many bytes of the file on disk have been read for it.
        is_first: whether the file begins here.
        repeated: which of the lines, counted from 0, are to be left out since they have been seen before.
    """

    text: str
    num_bytes: int
    is_first: bool
    repeated: frozenset[int] = frozenset()

    def lines(self) -> list[str]:
        """The lines, without the `\\n` at their ends."""
        return self.text.removesuffix("\n").split("\n")


def find_files(paths: Sequence[str]) -> tuple[Path, ...]:
    """The files that paths and globs (`**` stands for any folders) name: in the order of their names, none twice.

    Raises:
        DataError: a path names no file, or a folder.
    """
    found: dict[Path, Path] = {}
    for pattern in paths:
        # A name that is there is taken as it is: it may hold brackets.
        matches = [pattern] if Path(pattern).exists() else glob.glob(pattern, recursive=True)
        files = [Path(match) for match in matches if Path(match).is_file()]
        if not files and Path(pattern).is_dir():
            raise DataError(pattern, f"is a folder; wanted files, for example {Path(pattern) / '*.txt'}")
        if not files:
            raise DataError(pattern, "no such file, and no file's name matches this pattern")
        for file in files:
            target = file.resolve()
            found[target] = min(file, found.get(target, file))
    return tuple(sorted(found.values()))


def read_chunks(path: Path) -> Iterator[Chunk]:
    """Streams a UTF-8 text file, compressed or not, as its ending says.

    Raises:
        DataError: the file is missing, damaged or no UTF-8 text, or a line has more than 16 MiB; the line is named.
    """
    if not path.is_file():
        raise DataError(path, "no such file")
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        first_line = 1
        position = 0
        for lines in _whole_lines(stream, path):
            text = _decode(lines, path, first_line)
            yield Chunk(text, raw.tell() - position, is_first=first_line == 1)
            position = raw.tell()
            first_line += lines.count(b"\n")


def separates_documents(path: Path) -> bool:
    """Whether a file has a blank line between two lines of text, which then separates documents."""
    seen_text = seen_blank_line = False
    for chunk in read_chunks(path):
        for line in chunk.lines():
            if not line.strip():
                seen_blank_line = seen_text
            elif seen_blank_line:
                return True
            else:
                seen_text = True
    return False


def without_repeated_lines(chunks: Iterable[Chunk], seen: set[bytes]) -> Iterator[Chunk]:
    """Marks the lines that have been seen before, but for white space at their ends; blank lines stay.

    Arguments:
        chunks: the chunks of a file.
        seen: the 128-bit hashes of the lines seen so far, about 100 bytes of memory each; is added to.
    """
    for chunk in chunks:
        repeated = []
        for number, line in enumerate(chunk.lines()):
            if text := line.strip():
                key = hashlib.blake2b(text.encode(), digest_size=16).digest()
                if key in seen:
                    repeated.append(number)
                seen.add(key)
        yield dataclasses.replace(chunk, repeated=frozenset(repeated))


def _whole_lines(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """Pieces of the stream that end where a line ends; only the last may lack its line end."""
    rest = b""
    number = 1
    while block := _read(stream, path, number):
        cut = block.rfind(b"\n") + 1
        if cut:
            lines = rest + block[:cut]
            yield lines
            number += lines.count(b"\n")
            rest = block[cut:]
        else:
            rest += block
        if len(rest) > _MAX_LINE_BYTES:
            _decode(rest, path, number, errors="ignore")  # a binary file is better called by its name
            raise DataError(path, "the line has more than 16 MiB; wanted a paragraph or a document a line", number)
    if rest:
        yield rest


def _read(stream: IO[bytes], path: Path, line: int) -> bytes:
    try:
        return stream.read(_CHUNK_BYTES)
    except DAMAGE_ERRORS as error:
        raise DataError(path, f"the file is damaged or cut short ({error})", line) from None


def _decode(lines: bytes, path: Path, first_line: int, errors: str = "strict") -> str:
    """Whole lines as text; `first_line` is the number of the first of them."""
    if first_line == 1:
        lines = lines.removeprefix(codecs.BOM_UTF8)
    place = lines.find(b"\0")
    if place >= 0:
        problem = "holds a NUL byte, as binary files do; wanted UTF-8 text"
        raise DataError(path, problem, first_line + lines.count(b"\n", 0, place))
    try:
        return lines.decode(errors=errors)
    except UnicodeDecodeError as error:
        problem = f"byte 0x{lines[error.start]:02x} is not UTF-8; wanted UTF-8 text"
        raise DataError(path, problem, first_line + lines.count(b"\n", 0, error.start)) from None
