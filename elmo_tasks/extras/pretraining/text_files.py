"""Finds text files and reads them in chunks of about a million characters: they can be far larger than memory."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from elmo_tasks.errors import DataError
from elmo_tasks.files.paths import each_once, is_stream, local_path, matching_paths, why_no_file
from elmo_tasks.files.text import decode_lines, decompressed

_CHUNK_CHARACTERS = 1 << 20


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
        DataError: the file is missing, damaged or not UTF-8 text, or a line is too long; the line is named.
    """
    if not path.is_file() and not is_stream(path):
        raise DataError(path, why_no_file(path))
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        numbered, position, is_first = decode_lines(stream, path), 0, True
        while lines := _next_lines(numbered, path):
            end = raw.tell() if raw.seekable() else position
            yield Chunk(lines, end - position, is_first)
            position, is_first = end, False


def _next_lines(numbered: Iterator[tuple[int, str]], path: Path) -> list[str]:
    """The next lines of a file, which have about as many characters as a chunk; none at its end."""
    lines: list[str] = []
    size = 0
    for number, line in numbered:
        if "\0" in line:
            raise DataError(path, "holds a NUL byte, as binary files do; expected UTF-8 text", number)
        lines.append(line)
        size += len(line) + 1
        if size >= _CHUNK_CHARACTERS:
            break
    return lines


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
