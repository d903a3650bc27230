import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.extras.pretraining import tokenize_files
from elmo_tasks.extras.pretraining.tokenize_files import find_files, read_chunks, separates_documents

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def compress(path: Path, content: bytes) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside.txt", content)
    else:
        path.write_bytes(COMPRESSORS[path.suffix](content))
    return path


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def text_of(path: Path) -> str:
    return "\n".join(line for chunk in read_chunks(path) for line in chunk.lines)


def test_files_are_found_in_order_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "deep/er/c.txt", "odd[1].txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x")
    Path("link.txt").symlink_to("a.txt")
    Path("folder.txt").mkdir()
    names = ("b.txt", "*.txt", "**/c.txt", str(tmp_path / "a.txt"), "odd[1].txt")
    assert find_files(names[:-2]) == (Path("a.txt"), Path("b.txt"), Path("deep/er/c.txt"), Path("odd[1].txt"))
    assert find_files(names) == (tmp_path / "a.txt", Path("b.txt"), Path("deep/er/c.txt"), Path("odd[1].txt"))
    Path("0.txt").symlink_to("b.txt")  # a file with two names has the first
    for both in (("0.txt", "b.txt"), ("b.txt", "0.txt")):
        assert find_files(both) == (Path("0.txt"),)


def test_paths_without_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\*: no such file, and no file's name matches"):
        find_files((str(tmp_path / "none*"),))
    with pytest.raises(DataError, match=r"is a folder; expected files, for example .*\*\.txt"):
        find_files((str(tmp_path),))
    with pytest.raises(DataError, match="no such file"):
        text_of(tmp_path / "text")


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_chunks_are_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", size)
    text = "a först line\n\nthe ß second\r\nx\n\n\nthe last, without an end"
    path = write(tmp_path / "text", text.encode())
    chunks = list(read_chunks(path))
    assert [line for chunk in chunks for line in chunk.lines] == text.replace("\r", "").split("\n")
    assert [chunk.is_first for chunk in chunks] == [True] + [False] * (len(chunks) - 1)
    assert sum(chunk.num_bytes for chunk in chunks) == path.stat().st_size


@pytest.mark.parametrize("ending", [".gz", ".zip"])
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    content = b"".join(b"line %d\n" % number for number in range(120_000))
    path = compress(tmp_path / f"text{ending}", content)
    chunks = list(read_chunks(path))
    assert len(chunks) > 1
    assert [line for chunk in chunks for line in chunk.lines] == content.decode().splitlines()
    assert 0 < sum(chunk.num_bytes for chunk in chunks) <= path.stat().st_size


def test_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    assert text_of(write(tmp_path / "text", b"\xef\xbb\xbfone\ntwo")) == "one\ntwo"


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2", ".zip"])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_files(tmp_path: Path, ending: str, damage: str) -> None:
    path = compress(tmp_path / f"text{ending}", b"".join(b"%d squared is %d\n" % (n, n * n) for n in range(5000)))
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] if damage == "cut" else content[:middle] + bytes(50) + content[middle + 50 :])
    # Bytes that are wrong may be noticed before their checksum is.
    with pytest.raises(DataError, match=r"text\.\w+(:\d+)?: .*(is damaged or cut short|expected UTF-8 text)"):
        text_of(path)


@pytest.mark.parametrize("size", [4, 1 << 20])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"one\ntwo\nth\0ree\nfour\n", "text:3: holds a NUL byte, as binary files do; expected UTF-8 text"),
        (b"one\ntwo\nthree\ncaf\xe9\nfive\n", "text:4: byte 0xe9 at column 4 is not UTF-8; expected UTF-8 text"),
        ("one\n".encode("utf-16"), "text: the file is UTF-16; expected UTF-8"),
        (b"\0one\n", "text:1: holds a NUL byte"),
    ],
)
def test_binary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, problem: str, size: int) -> None:
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", size)
    with pytest.raises(DataError, match=problem):
        text_of(write(tmp_path / "text", content))


def test_endless_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "0.0000003")  # 30 bytes
    assert text_of(write(tmp_path / "text", b"a\n" + b"b" * 30)) == "a\n" + "b" * 30
    with pytest.raises(DataError, match="text:2: the line has more than 30 bytes"):
        text_of(write(tmp_path / "text", b"a\n" + b"b" * 31 + b"\n"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\n\nb", True),
        (b"a\n \t\r\nb\n", True),
        (b"a\nb\n", False),
        (b"\n\na\nb\n\n\n", False),
        (b"", False),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_separates_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, expected: bool, size: int
) -> None:
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", size)
    assert separates_documents(write(tmp_path / "text", content)) == expected
