"""One process at a time writes to the folder of a run."""

import errno
import json
import logging
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import filelock
import pytest

from elmo_tasks.errors import RunError
from elmo_tasks.extras.studies.study_runs import claimed
from elmo_tasks.files.locks import locked
from elmo_tasks.runs import train
from elmo_tasks.runs.archive import archive

HOLD = """
import sys, pathlib
from elmo_tasks.files.locks import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the folder `run`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_and_told_who_is_there(held: subprocess.Popen[str], tmp_path: Path) -> None:
    message = (
        rf"run: in use by process {held.pid} on {platform.node()} since \d{{4}}-\d\d-\d\d .* \(-c .*run\); wait until"
    )
    for writes in (True, False):
        with pytest.raises(RunError, match=message), locked(tmp_path / "run", writes=writes):
            pass
    os.kill(held.pid, signal.SIGKILL)
    held.wait()
    with locked(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / ".lock.json").read_text())["process"] == os.getpid()
        with pytest.raises(RunError, match=f"process {os.getpid()}"), locked(tmp_path / "run"):
            pass
    assert list((tmp_path / "run").iterdir()) == []


def test_an_argument_of_the_command_need_not_be_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["elmo-tasks", "train", "caf\udce9"])
    with (
        locked(tmp_path / "run"),
        pytest.raises(RunError, match=r"\(elmo-tasks train 'caf.'\)"),
        locked(tmp_path / "run"),
    ):
        pass


def test_a_holder_that_did_not_say_who_it_is_is_another_process(held: subprocess.Popen[str], tmp_path: Path) -> None:
    for content in ("", "[]", "{}", '{"process": 1}'):
        (tmp_path / "run" / ".lock.json").write_text(content)
        with pytest.raises(RunError, match="run: in use by another process; wait until"), locked(tmp_path / "run"):
            pass


def test_training_and_archiving_are_refused(held: subprocess.Popen[str], config_file: Path, tmp_path: Path) -> None:
    ways: tuple[dict[str, Any], ...] = ({}, {"resume": True}, {"force": True})
    for settings in ways:
        with pytest.raises(RunError, match="in use by process"):
            train.train(config_file, tmp_path / "run", **settings)
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(RunError, match="in use by process"):
        archive(tmp_path / "run", tmp_path / "run.tar.gz")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", ".lock.json", "config.json"]


def test_what_is_made_for_the_lock_is_removed_and_what_the_block_writes_stays(tmp_path: Path) -> None:
    with locked(tmp_path / "a" / "b" / "run"):
        pass
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    with locked(tmp_path / "a" / "run"):
        (tmp_path / "a" / "run" / "config.json").touch()
    assert [path.name for path in (tmp_path / "a").rglob("*")] == ["run", "config.json"]
    with locked(tmp_path / "a" / "run"):
        pass
    assert [path.name for path in (tmp_path / "a").rglob("*")] == ["run", "config.json"]


def test_a_full_disk_hides_only_who_holds_the_lock(
    tmp_path: Path, room: Callable[[int], AbstractContextManager[None]]
) -> None:
    with room(0), locked(tmp_path), pytest.raises(RunError, match="in use by another process"), locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lock", [locked, claimed])
@pytest.mark.parametrize("error", [OSError(errno.ENOLCK, "No locks available"), NotImplementedError("no flock")])
def test_without_locks_a_warning_says_so(
    error: Exception,
    lock: Callable[[Path], AbstractContextManager[Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(lock: filelock.BaseFileLock, timeout: float) -> None:
        raise error

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with caplog.at_level(logging.WARNING), lock(tmp_path) as is_ours:
        assert is_ours is not False
    assert f"{tmp_path}: no lock ({error}); make sure" in caplog.text


def test_a_folder_that_cannot_be_written_is_read_without_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(lock: filelock.BaseFileLock, timeout: float) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / ".lock"))

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with locked(tmp_path, writes=False):
        pass
    with pytest.raises(PermissionError), locked(tmp_path):
        pass
