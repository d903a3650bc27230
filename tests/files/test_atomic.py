"""Writes that are interrupted or find no room, and what killed writers leave behind."""

import contextlib
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import pytest

from elmo_tasks.errors import WriteError
from elmo_tasks.files.atomic import OutputFile, atomic_folder, atomic_output, atomic_write
from elmo_tasks.files.json_files import write_json

Room = Callable[[int], AbstractContextManager[None]]

WRITERS: dict[str, Callable[[Path], AbstractContextManager[object]]] = {
    "file": atomic_write,
    "output": atomic_output,
    "folder": atomic_folder,
}

KILLED_WHILE_WRITING = """
import os, sys
from elmo_tasks.files.atomic import atomic_folder, atomic_write
with atomic_write(sys.argv[1]) as stream, atomic_folder(sys.argv[2]) as folder:
    stream.write(b"half")
    (folder / "half").touch()
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("writer", WRITERS)
def test_folders_on_the_way_are_made(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "written"
    with WRITERS[writer](path):
        pass
    assert path.exists()


def test_an_interrupted_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, [1])
    with pytest.raises(TypeError):
        write_json(path, [2, object()])
    with contextlib.suppress(KeyboardInterrupt), atomic_write(path) as stream:
        stream.write(b"half")
        stream.flush()
        raise KeyboardInterrupt
    assert path.read_text() == "[\n  1\n]\n"
    assert list(tmp_path.iterdir()) == [path]


def test_of_a_link_the_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_write(tmp_path / "link") as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_is_written_may_be_read_by_those_who_may_read_any_new_file(tmp_path: Path) -> None:
    write_json(tmp_path / "file", 1)
    (tmp_path / "new file").touch()
    with atomic_folder(tmp_path / "folder"):
        (tmp_path / "new folder").mkdir()
    for kind in ("file", "folder"):
        assert (tmp_path / kind).stat().st_mode == (tmp_path / f"new {kind}").stat().st_mode


def test_an_interrupted_folder_is_not_there_and_a_complete_one_stays(tmp_path: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), atomic_folder(tmp_path / "made") as folder:
        (folder / "half").touch()
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    for name in ("first", "second"):
        with atomic_folder(tmp_path / "made") as folder:
            (folder / name).touch()
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["first"]


def test_a_file_that_does_not_fit_is_named_and_the_old_one_stays(tmp_path: Path, room: Room) -> None:
    path = tmp_path / "file.json"
    write_json(path, [1])
    message = (
        rf"^{path}: cannot be written: File too large; expected at least %s bytes. Free some space there or choose"
    )
    with room(1000), pytest.raises(WriteError, match=message % "10,008"):
        write_json(path, "x" * 10_005)

    def lines(stream: IO[bytes]) -> None:
        for _ in range(3000):
            stream.write(b"line\n")
        raise AssertionError("the error comes before the end of the block")

    with room(1000), pytest.raises(WriteError, match=message % r"[\d,]+"), atomic_write(path) as stream:
        lines(stream)
    assert path.read_text() == "[\n  1\n]\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_for_libraries_keeps_its_error_until_it_is_asked(tmp_path: Path, room: Room) -> None:
    path = tmp_path / "file"

    def library(stream: OutputFile) -> None:
        stream.write(b"a" * 900)
        stream.check()
        assert stream.write(b"b" * 1500) == 1500
        assert stream.tell() == 2400
        stream.seek(0)
        stream.write(b"c" * 100)
        stream.truncate(2450)
        raise ZeroDivisionError("what the library makes of it")

    with room(1000), pytest.raises(WriteError, match="expected at least 2,450 bytes"), atomic_output(path) as stream:
        library(stream)
    assert list(tmp_path.iterdir()) == []
    with atomic_output(path) as stream:
        stream.write(b"abc")
        stream.seek(1)
        assert stream.read() == b"bc"
    assert path.read_bytes() == b"abc"


def test_what_is_in_the_way_is_an_error_that_names_the_file_and_not_a_temporary_one(tmp_path: Path, room: Room) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match=rf"^{tmp_path}/folder: cannot be written: Is a directory$"):
        write_json(tmp_path / "folder", 1)
    message = rf"^{tmp_path}/made/inner\.json: cannot be written: File too large"
    with room(10), pytest.raises(WriteError, match=message), atomic_folder(tmp_path / "made") as made:
        write_json(made / "inner.json", list(range(100)))
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_files_that_belong_together_are_all_moved_or_none(tmp_path: Path, room: Room) -> None:
    def write(value: object) -> None:
        with atomic_folder(tmp_path / "made", merge=True) as files:
            write_json(files / "one.json", 0 if value == 0 else 1)
            write_json(files / "two.json", value)

    write(0)
    with room(100), pytest.raises(WriteError, match=rf"^{tmp_path}/made/two\.json: cannot be written: File too large"):
        write(list(range(100)))
    assert {path.name: path.read_text() for path in (tmp_path / "made").iterdir()} == {
        "one.json": "0\n",
        "two.json": "0\n",
    }


@pytest.mark.parametrize(
    ("writer", "call"),
    [
        *((writer, f"os.{call}") for writer in ("file", "output") for call in ("open", "fsync", "replace")),
        *(("folder", f"os.{call}") for call in ("mkdir", "rename")),
    ],
)
def test_no_failure_names_a_temporary_file(
    writer: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: object = None, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(name))

    expected = pytest.raises(WriteError, match=r"/target: cannot be written: Permission denied$")
    with expected, monkeypatch.context() as patch:
        patch.setattr(call, fail)
        with WRITERS[writer](tmp_path / "target"):
            pass
    assert not list(tmp_path.iterdir())


def test_what_a_block_fails_to_write_has_its_own_name(tmp_path: Path) -> None:
    with (
        pytest.raises(WriteError, match=rf"^{tmp_path}/target/inner/file: cannot be written: No such file"),
        atomic_folder(tmp_path / "target") as temporary,
    ):
        (temporary / "inner" / "file").touch()
    for error in (OSError("not about a file"), FileNotFoundError(errno.ENOENT, "elsewhere", "/elsewhere")):
        with pytest.raises(OSError, match=r"elsewhere|about") as caught, atomic_folder(tmp_path / "target"):
            raise error
        assert caught.value is error
    assert not list(tmp_path.iterdir())


def test_a_temporary_file_that_cannot_be_removed_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, **_: bool) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "target"):
        _ = 1 / 0


def test_devices_are_written_directly() -> None:
    before = os.stat("/dev/null").st_ino
    write_json("/dev/null", [1])
    assert os.stat("/dev/null").st_ino == before
    with pytest.raises(WriteError, match=r"^/dev/full: cannot be written: No space left on device"):
        write_json("/dev/full", [1])


def test_a_pipe_whose_reader_has_gone_is_not_a_full_disk(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def lose_the_reader(stream: IO[bytes]) -> None:
        os.close(reader)
        stream.write(b"x" * 100_000)

    with pytest.raises(BrokenPipeError), atomic_write(tmp_path / "pipe") as stream:
        lose_the_reader(stream)


def test_what_killed_writers_left_is_removed_after_a_day(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(tmp_path / "file"), str(tmp_path / "made")]
    assert subprocess.run(command, timeout=60).returncode == -9
    left = list(tmp_path.iterdir())
    assert len(left) == 2  # and nothing under its final name

    def written_ago(hours: float) -> None:
        for path in (*left, *tmp_path.rglob("half")):
            os.utime(path, (time.time() - hours * 3600,) * 2)

    def write(name: str) -> None:
        (link := tmp_path.with_name(name)).symlink_to(tmp_path)  # a process searches a folder only once
        write_json(link / name, 1)

    written_ago(23.9)
    write("one")
    assert all(path.exists() for path in left)
    written_ago(24.1)
    os.utime(next(tmp_path.rglob("half")))  # somebody still writes to the folder
    write("two")
    left = [path for path in left if path.exists()]
    assert [path.is_dir() for path in left] == [True]
    written_ago(24.1)
    write("three")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "three", "two"]


def test_two_writers_do_not_mix(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "file") as one, atomic_write(tmp_path / "file") as other:
        one.write(b"one")
        other.write(b"other")
    assert (tmp_path / "file").read_bytes() == b"one"  # the last that ends
    assert len(list(tmp_path.iterdir())) == 1


def test_files_of_others_stay_however_old_they_are(tmp_path: Path) -> None:
    own = [tmp_path / name for name in ("notes.tmp", ".elmo-tasks.notes", ".elmo-tasks", ".tmp")]
    for path in own:
        path.touch()
        os.utime(path, (0, 0))
    write_json(tmp_path / "file", 1)
    assert all(path.exists() for path in own)


def test_an_output_can_be_cut_and_made_longer(tmp_path: Path, room: Room) -> None:
    with atomic_output(tmp_path / "file") as stream:
        stream.write(b"abcdefgh")
        assert stream.truncate(6) == 6
        stream.seek(3)
        assert stream.truncate() == 3
        assert stream.tell() == 3
    assert (tmp_path / "file").read_bytes() == b"abc"
    expected = pytest.raises(WriteError, match="expected at least 2,000 bytes")
    with room(1000), expected, atomic_output(tmp_path / "file") as stream:
        assert stream.truncate(2000) == 2000
