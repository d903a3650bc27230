"""Finds text files and reads them in chunks of about 1 MiB, so that they can be far larger than memory."""

from __future__ import annotations

import codecs
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from elmo_tasks.errors import DataError
from elmo_tasks.files.paths import each_once, is_stream, local_path, matching_paths, why_no_file
from elmo_tasks.files.text import CR_TO_LF, DAMAGE_ERRORS, decompressed, foreign_encoding

_CHUNK_BYTES = 1 << 20
_MAX_LINE_BYTES = 16 << 20


class Chunk(NamedTuple):
    """Consecutive whole lines of a file."""

    lines: list[str]  # without the line ends
    num_bytes: int  # read for it from the file on disk
    is_first: bool  # whether the file begins here


def find_files(paths: Sequence[str]) -> tuple[Path, ...]:
    """The files that paths and globs (`**`: any folders) name, in the order of their names, each once.

    Raises:
        DataError: a path names no file, or a folder.
    """
    found: list[Path] = []
    for pattern in map(local_path, paths):
        files = [match for match in matching_paths(pattern) if match.is_file() or is_stream(match)]
        if not files and pattern.is_dir():
            raise DataError(pattern, f"is a folder; expected files, for example {pattern / '*.txt'}")
        if not files:
            raise DataError(pattern, "no such file, and no file's name matches this pattern")
        found += files
    return tuple(each_once(sorted(found)))


def read_chunks(path: Path) -> Iterator[Chunk]:
    """Streams a UTF-8 text file, which is decompressed if its name ends in .gz, .xz, .bz2 or .zip.

    Raises:
        DataError: the file is missing, damaged or not UTF-8 text, or a line has more than 16 MiB; the line is named.
    """
    if not path.is_file() and not is_stream(path):
        raise DataError(path, why_no_file(path))
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        number, position = 1, 0
        while True:
            try:
                block = stream.read(_CHUNK_BYTES)
                rest_of_line = stream.readline(_MAX_LINE_BYTES + 1)
            except DAMAGE_ERRORS as error:
                raise DataError(path, f"the file is damaged or cut short ({error})", number) from None
            if not block:
                return
            text = _decode(block + rest_of_line, path, number, is_cut=len(rest_of_line) > _MAX_LINE_BYTES)
            lines = text.removesuffix("\n").split("\n")
            end = raw.tell() if raw.seekable() else position
            yield Chunk(lines, end - position, is_first=number == 1)
            number += len(lines)
            position = end


def separates_documents(path: Path) -> bool:
    """Whether a file has a blank line between two lines of text: then blank lines separate its documents."""
    lines = (line for chunk in read_chunks(path) for line in chunk.lines)
    texts = (is_text for is_text, _ in itertools.groupby(lines, key=lambda line: bool(line.strip())) if is_text)
    return next(itertools.islice(texts, 1, None), False)


def without_repeated_lines(chunks: Iterable[Chunk], seen: set[bytes]) -> Iterator[Chunk]:
    """Leaves out lines that were seen before, apart from white space at their ends; blank lines stay.

    Arguments:
        seen: the 128-bit hashes of the lines seen so far, about 100 bytes of memory each; new ones are added.
    """
    for chunk in chunks:
        kept = []
        for line in chunk.lines:
            if text := line.strip():
                key = hashlib.blake2b(text.encode(), digest_size=16).digest()
                if key in seen:
                    continue
                seen.add(key)
            kept.append(line)
        yield chunk._replace(lines=kept)


def _decode(lines: bytes, path: Path, first_line: int, is_cut: bool) -> str:
    """Whole lines as text, numbered from `first_line`; `is_cut` if the last one is too long."""

    def problem(position: int, message: str) -> DataError:
        return DataError(path, message, first_line + lines.count(b"\n", 0, position))

    if first_line == 1:
        if wrong := foreign_encoding(lines):
            raise DataError(path, wrong)
        lines = lines.removeprefix(codecs.BOM_UTF8)
        if b"\n" not in lines and not is_cut:
            lines = lines.replace(b"\r", b"\n")  # as in `files.read_lines`
    if (position := lines.find(b"\0")) >= 0:
        raise problem(position, "holds a NUL byte, as binary files do; expected UTF-8 text")
    if is_cut:
        remedy = f"; convert line ends in CR with: {CR_TO_LF}" if b"\r" in lines[lines.rfind(b"\n") :] else ""
        raise problem(len(lines), f"the line has more than 16 MiB; expected a paragraph or a document a line{remedy}")
    try:
        return lines.decode()
    except UnicodeDecodeError as error:
        message = f"byte 0x{lines[error.start]:02x} is not UTF-8; expected UTF-8 text"
        raise problem(error.start, message) from None
