"""Parsing JSON: values, and problems with their line and column; lines of compressed files."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks import limits
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files import content_hash, kept_hash, parse_json, read_lines


def test_a_value() -> None:
    text = r'{"a": ["\ud83d\ude00", "\\ud83d", "\u00e9\n", 1.5]}'
    assert parse_json(text, "some.json", "JSON") == {"a": ["\N{GRINNING FACE}", r"\ud83d", "é\n", 1.5]}
    assert len(parse_json("[" + "[[]]," * 1000 + "0]", "some.json", "JSON")) == 1001  # wide, but not deep


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1', "Expecting ',' delimiter at column 8; wanted a number"),
        pytest.param("1" * 5000, "a whole number has too many digits; wanted a number", id="many digits"),
        pytest.param("[" * 100_000, "lists or objects are nested too deeply; wanted a number", id="deep nesting"),
        pytest.param('{"a": [' * 101 + "]}" * 101, "lists or objects are nested too deeply", id="202 levels"),
        (r'["\ud83d"]', r"\ud83d at column 3 is half of a surrogate pair; wanted both halves"),
        (r'["\\\uDE00 "]', r"\uDE00 at column 5 is half of a surrogate pair"),
        (r'["\ud83d\ud83d\ude00"]', r"\ud83d at column 3 is half of a surrogate pair"),
        (r'{"\ude00": "\ud83d\ude00"}', r"\ude00 at column 3 is half of a surrogate pair"),
    ],
)
def test_what_is_wrong_with_a_line(text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(text, "some.json", "a number", 7)
    assert str(caught.value).startswith(f"some.json:7: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":\n "b" 1}', ":2: Expecting ',' delimiter at column 6"),
        ('{"a":\n "b\\ud83d"}', r":2: \ud83d at column 4 is half of a surrogate pair"),
        pytest.param("[" + "1" * 5000, ": a whole number has too many digits", id="many digits"),
    ],
)
def test_lines_of_a_whole_file_are_counted(text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(text, "some.json", "JSON")
    assert str(caught.value).startswith(f"some.json{problem}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_a_line_that_bursts_is_not_read_to_its_end(
    suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(compress(bytes(1_000_000)) * 2000)  # 2 GB
    with pytest.raises(DataError, match=r"the line has more than 100,000,000 bytes; .* ELMO_TASKS_LIMITS=10"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zip"])
def test_bounds_of_lines_and_of_what_is_unpacked(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, path = b"ab\n" + b"long " * 200 + b"\n" + bytes(10_000_000), tmp_path / f"text{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("text", content)
    else:
        with {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[suffix](path, "wb") as stream:
            stream.write(content)
    assert len(list(read_lines(path))) == 3
    monkeypatch.setenv(limits.VARIABLE, "1e-5")  # lines of 1000 bytes
    lines = read_lines(path)
    problem = "the line has more than 1,000 bytes" if not suffix else r"unpacks to more than \d,?\d\d\d bytes"
    with pytest.raises(DataError, match=rf"text{suffix}(:2)?: {problem}; .* ELMO_TASKS_LIMITS=10"):
        list(lines)
    for wrong in ("ten", "0", "-1", "inf"):
        monkeypatch.setenv(limits.VARIABLE, wrong)
        with pytest.raises(ElmoTasksError, match=f"ELMO_TASKS_LIMITS: got '{wrong}'; wanted a positive number"):
            list(read_lines(path))


@pytest.mark.parametrize("place", [0, 15, 40, 60, -30, -10])
def test_damaged_zip_archives(place: int, tmp_path: Path) -> None:
    path = tmp_path / "text.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("text", b"one line\n" * 20)
    whole = path.read_bytes()
    path.write_bytes(whole[:place])
    with pytest.raises(DataError, match=r"text\.zip: the archive is damaged"):
        list(read_lines(path))
    damaged = bytearray(whole)
    damaged[place] ^= 0xFF
    path.write_bytes(damaged)
    with contextlib.suppress(DataError):  # not all of the bytes matter
        list(read_lines(path))


def test_lines_keep_the_white_space_at_their_ends(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes("a \t\r\nb\u00a0\n".encode())
    assert list(read_lines(tmp_path / "lines")) == [(1, "a \t"), (2, "b\u00a0")]


def test_the_hash_of_a_file_that_was_rewritten_in_place_is_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for time, content in enumerate((b"one", b"two", b"three")):
        with path.open("r+b" if path.exists() else "wb") as stream:  # the same file, twice with the same size
            stream.write(content)
        os.utime(path, (time, time))
        assert kept_hash(path) == content_hash(path)
