"""Parsing JSON: values, and problems with their line and column; lines of compressed files."""

import bz2
import contextlib
import gzip
import lzma
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config.jsonnet import evaluate
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.pretraining.tokenize_files import read_chunks
from elmo_tasks.files import limits
from elmo_tasks.files.cache import cache_folder, content_hash, kept_hash
from elmo_tasks.files.json_files import parse_json, read_json
from elmo_tasks.files.paths import plain_name, stored_file
from elmo_tasks.files.text import read_lines


def test_a_value() -> None:
    text = r'{"a": ["\ud83d\ude00", "\\ud83d", "\u00e9\n", 1.5]}'
    assert parse_json(text, "some.json", "JSON") == {"a": ["\N{GRINNING FACE}", r"\ud83d", "é\n", 1.5]}
    large = 123456789012345678901234567890
    assert parse_json(f"\ufeff[1e308, {large}]", "a", "b") == [1e308, large]
    assert len(parse_json("[" + "[[]]," * 1000 + "0]", "some.json", "JSON")) == 1001  # wide, but not deep
    deep = "[" * 200 + "]" * 200
    assert str(parse_json(deep, "some.json", "JSON")) == deep


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1', "EOF while parsing an object at column 7; expected a number"),
        pytest.param("1" * 5000, "number out of range at column 4302; expected a number", id="many digits"),
        pytest.param("[" * 100_000, "recursion limit exceeded at column 202; expected a number", id="deep nesting"),
        pytest.param("[[" + '{"a": [' * 100 + "]}" * 100 + "]]", "recursion limit exceeded", id="202 levels"),
        (r'["\ud83d"]', "unexpected end of hex escape at column 9"),
        (r'["\\\uDE00 "]', "lone leading surrogate in hex escape at column 10"),
        (r'{"\ude00": "\ud83d\ude00"}', "lone leading surrogate in hex escape at column 8"),
        (r'["NaN \" NaN", NaN]', "NaN is not a finite number (null stands for none); expected a number"),
        ('{"a": -Infinity}', "-Infinity is not a finite number"),
        ('{"1e400": [1e-400, 1e400]}', "1e400 is not a finite number"),
        ("-1.5E+999", "-1.5E+999 is not a finite number"),
        ('[{"a": 1}, {"b": {"c": 2, "a": 1, "a": 1}}]', "an object has the key 'a' twice; expected a number"),
    ],
)
def test_what_is_wrong_with_a_line(text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(text, "some.json", "a number", 7)
    assert str(caught.value).startswith(f"some.json:7: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":\n "b" 1}', ":2: expected `,` or `}` at column 6"),
        ('\n{"b\\ud83d": 1}', ":2: unexpected end of hex escape at column 10"),
        ("\n[NaN]", ": NaN is not a finite number"),
    ],
)
def test_lines_of_a_whole_file_are_counted(text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(text, "some.json", "JSON")
    assert str(caught.value).startswith(f"some.json{problem}")


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zip"])
def test_bounds_of_lines_and_of_what_is_unpacked(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, path = b"ab\n" + b"long " * 200 + b"\n" + bytes(10_000_000), tmp_path / f"text{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("text", content)
    else:
        openers: dict[str, Any] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        with openers[suffix](path, "wb") as stream:
            stream.write(content)
    assert len(list(read_lines(path))) == 3
    monkeypatch.setenv(limits.VARIABLE, "1e-5")  # lines of 1000 bytes
    lines = read_lines(path)
    problem = "the line has more than 1,000 bytes" if not suffix else r"unpacks to more than \d,?\d\d\d bytes"
    with pytest.raises(DataError, match=rf"text{suffix}(:2)?: {problem}; .* ELMO_TASKS_LIMITS=10"):
        list(lines)
    for wrong in ("ten", "0", "-1", "inf"):
        monkeypatch.setenv(limits.VARIABLE, wrong)
        with pytest.raises(ElmoTasksError, match=f"ELMO_TASKS_LIMITS: got '{wrong}'; expected a positive number"):
            list(read_lines(path))


@pytest.mark.parametrize("index", [0, 15, 40, 60, -30, -10])
def test_damaged_zip_archives(index: int, tmp_path: Path) -> None:
    path = tmp_path / "text.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("text", b"one line\n" * 20)
    whole = path.read_bytes()
    path.write_bytes(whole[:index])
    with pytest.raises(DataError, match=r"text\.zip: the archive is damaged"):
        list(read_lines(path))
    damaged = bytearray(whole)
    damaged[index] ^= 0xFF
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


def test_a_byte_order_mark_is_left_out_where_a_line_begins(tmp_path: Path) -> None:
    """Two files that each begin with one may have been joined. In lines with columns it is left out everywhere."""
    (tmp_path / "lines").write_bytes("\ufeffone\n\ufefftw\ufeffo\n".encode())
    assert list(read_lines(tmp_path / "lines")) == [(1, "one"), (2, "tw\ufeffo")]
    assert list(read_lines(tmp_path / "lines", columns=True)) == [(1, "one"), (2, "two")]


@pytest.mark.parametrize(
    ("content", "text", "columns"),
    [
        (b"one\rtwo\r\rthree\r", ["one", "two", "", "three"], ["one", "two", "", "three"]),
        (b"one\rtwo\nthree\r\n", ["one\rtwo", "three"], ["one", "two", "three"]),  # a stray one is white space in text
        (b"one\r\r\ntwo\r\n", ["one", "two"], ["one", "two"]),
        (b"one\ntwo\rthree", ["one", "two\rthree"], ["one", "two", "three"]),
        (b"one\r", ["one"], ["one"]),
    ],
)
def test_line_ends(content: bytes, text: list[str], columns: list[str], tmp_path: Path) -> None:
    (tmp_path / "lines.gz").write_bytes(gzip.compress(content))
    assert list(read_lines(tmp_path / "lines.gz")) == list(enumerate(text, start=1))
    assert list(read_lines(tmp_path / "lines.gz", columns=True)) == list(enumerate(columns, start=1))


def test_a_long_file_whose_lines_end_in_cr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "1e-7")  # lines of 10 bytes
    (tmp_path / "lines").write_bytes(b"one\r" * 5)
    with pytest.raises(DataError, match=r"lines:1: the line has more than 10 bytes; convert line ends in CR with: tr "):
        list(read_lines(tmp_path / "lines"))


@pytest.mark.parametrize(
    ("content", "columns", "place"),
    [
        (b"one\rt\xff", False, "2: byte 0xff at column 2"),
        (b"one\rt\xff\n", False, "1: byte 0xff at column 6"),
        (b"one\rt\xff\n", True, "2: byte 0xff at column 2"),
        (b"one\nt\rw\xff", False, "2: byte 0xff at column 4"),
    ],
)
def test_bytes_that_are_not_utf8_are_where_lines_end(content: bytes, columns: bool, place: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(content)
    with pytest.raises(DataError, match=f"lines:{place} is not UTF-8; expected UTF-8 text$"):
        list(read_lines(tmp_path / "lines", columns=columns))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_another_unicode_encoding_is_named(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes("Mary läuft.\nOslo\n".encode(encoding))
    name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
    reads: tuple[Callable[[Path], object], ...] = (
        lambda path: list(read_lines(path)),
        lambda path: list(read_chunks(path)),
        evaluate,
        lambda path: read_json(path, dict, "JSON"),
    )
    for read in reads:
        with pytest.raises(ElmoTasksError, match=f"lines: the file is {name}.*; expected UTF-8. Convert it with: ico"):
            read(tmp_path / "lines")


def test_a_line_may_have_just_the_most_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "1e-7")  # lines of 10 bytes
    (tmp_path / "lines").write_text("123456789\n1234567890")
    assert list(read_lines(tmp_path / "lines")) == [(1, "123456789"), (2, "1234567890")]
    (tmp_path / "lines").write_text("a\n1234567890\n")
    with pytest.raises(DataError, match=r"lines:2: the line has more than 10 bytes"):
        list(read_lines(tmp_path / "lines"))


def test_damage_is_in_the_line_after_the_last_one_that_was_read(tmp_path: Path) -> None:
    content = gzip.compress(b"one\ntwo\n")
    (tmp_path / "lines.gz").write_bytes(content[:-1])
    read: list[str] = []
    with pytest.raises(DataError, match=r"lines\.gz:\d: the compressed file is damaged .* \(Compressed") as caught:
        read.extend(line for _, line in read_lines(tmp_path / "lines.gz"))
    assert f"lines.gz:{len(read) + 1}: " in str(caught.value)


@pytest.mark.parametrize("names", [(), ("one", "two"), ("folder/",)])
def test_a_zip_archive_has_exactly_one_file(names: tuple[str, ...], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    number = sum(not name.endswith("/") for name in names)
    with pytest.raises(DataError, match=rf"text\.zip: the archive contains {number} files; expected exactly one"):
        list(read_lines(tmp_path / "text.zip"))
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/text", b"a line")
        for clutter in ("folder/._text", "folder/.DS_Store", "__MACOSX/folder/._text", "Thumbs.db", "__MACOSX/"):
            archive.writestr(clutter, b"x")
    assert list(read_lines(tmp_path / "text.zip")) == [(1, "a line")]


def test_the_name_of_a_compressed_file_without_its_ending() -> None:
    names = ("a.txt", "a.txt.gz", "a.txt.xz", "a.txt.bz2", "a.txt.zip", "a.tar")
    assert [plain_name(Path("folder", name)) for name in names] == ["a.txt"] * 5 + ["a.tar"]


def test_a_file_that_is_not_there_may_be_there_with_another_compression(tmp_path: Path) -> None:
    named = [tmp_path / f"a.txt{ending}" for ending in ("", ".gz", ".xz", ".bz2", ".zip")]
    assert [stored_file(path) for path in named] == named
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"packed"))
    (tmp_path / "a.txt.zip").mkdir()
    assert [stored_file(path).name for path in named] == ["a.txt.gz"] * 4 + ["a.txt.zip"]
    assert list(read_lines(tmp_path / "a.txt")) == [(1, "packed")]
    (tmp_path / "a.txt").write_text("plain")
    assert [stored_file(path).name for path in named] == ["a.txt", "a.txt.gz", "a.txt", "a.txt", "a.txt.zip"]
    assert list(read_lines(tmp_path / "a.txt.xz")) == [(1, "plain")]
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"a\.txt:1: byte 0xff"):
        list(read_lines(tmp_path / "a.txt.xz"))


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setenv("ELMO_TASKS_CACHE", "/mine")
    assert cache_folder() == Path("/mine")
    monkeypatch.delenv("ELMO_TASKS_CACHE")
    assert cache_folder() == Path("/somewhere/elmo-tasks")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder() == tmp_path / ".cache" / "elmo-tasks"
