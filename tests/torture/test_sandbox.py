"""The harness itself: every kind of fault is seen, and the cases after it are tried too."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.errors import DataError, ElmoTasksError
from tests.torture import sandbox
from tests.torture.report import Report
from tests.torture.sandbox import Case, Outcome, allowed, run_cases
from tests.torture.watching import watched


def fail(error: BaseException) -> None:
    raise error


@dataclasses.dataclass
class Cases:
    """A part with these cases."""

    runs: list[Callable[[Path], object]]
    name: str = "cases"
    seconds: float = 10.0

    def case(self, number: int) -> Case | None:
        if number >= len(self.runs):
            return None
        return Case("kind", f"case {number}", self.runs[number], self.seconds)


def problems(part: Cases, scratch: Path, **bounds: int) -> list[str]:
    return [outcome.problem for outcome in run_cases(part, scratch, **bounds)]


def test_an_error_a_crash_a_warning_and_too_much_memory_are_failures(tmp_path: Path) -> None:
    runs: list[Callable[[Path], object]] = [
        lambda folder: None,
        lambda folder: fail(KeyError("gone")),
        lambda folder: ctypes.string_at(0),
        lambda folder: warnings.warn("overflow", RuntimeWarning, stacklevel=1),
        lambda folder: bytearray(8 << 30),
        lambda folder: os._exit(0),
        lambda folder: (folder / "file").write_text("x"),
    ]
    fine, error, crash, warning, memory, ended, last = problems(Cases(runs), tmp_path)
    assert fine == last == ""
    assert error.strip().endswith("KeyError: 'gone'")
    assert "SIGSEGV" in crash
    assert "RuntimeWarning: overflow" in warning
    assert "MemoryError" in memory
    assert "in the middle of the case" in ended


@pytest.mark.slow
def test_cases_that_take_long_or_wait_forever_are_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 0.5)

    def work(folder: Path) -> None:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass

    runs: list[Callable[[Path], object]] = [lambda folder: time.sleep(60), work, lambda folder: None]
    waits, works, fine = problems(Cases(runs, seconds=0.05), tmp_path)
    assert waits.startswith("still running")
    assert works == "0 seconds of CPU time"
    assert fine == ""


def test_a_number_and_a_first_case_choose_cases(tmp_path: Path) -> None:
    runs: list[Callable[[Path], object]] = [lambda folder: fail(KeyError(1)), lambda folder: None]
    assert problems(Cases(runs), tmp_path, first=1, most=1) == [""]


def test_only_the_files_of_failed_cases_stay(tmp_path: Path) -> None:
    def leave(folder: Path) -> None:
        (folder / "file").write_text("x")

    def leave_and_fail(folder: Path) -> None:
        leave(folder)
        fail(KeyError())

    def leave_and_abort(folder: Path) -> None:
        leave(folder)
        os.abort()

    fine, *failed = run_cases(Cases([leave, leave_and_fail, leave_and_abort]), tmp_path)
    assert fine.folder == ""
    assert sorted(tmp_path.rglob("file")) == sorted(Path(outcome.folder) / "file" for outcome in failed)


def test_errors_of_users_are_allowed_and_others_are_not() -> None:
    allowed(lambda: fail(DataError("file", "problem")))
    allowed(lambda: fail(FileNotFoundError(2, "No such file", "path")))
    with pytest.raises(OSError, match="File too large"):
        allowed(lambda: fail(OSError(27, "File too large")))
    with pytest.raises(ValueError, match="odd"):
        allowed(lambda: fail(ValueError("odd")))
    with pytest.raises(AssertionError, match="without a message"):
        allowed(lambda: fail(ElmoTasksError("")))
    with pytest.raises(AssertionError, match="60000 characters"):
        allowed(lambda: fail(ElmoTasksError("x" * 60_000)))


def test_the_report_counts_faults_and_keeps_the_files_of_a_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report(tmp_path / "report", seed=7)
    for number in range(5):
        folder = tmp_path / f"case-{number}"
        folder.mkdir()
        (folder / "input.txt").write_text("x")
        problem = f'File "/x/elmo_tasks/files/text.py", line 3, in read\nKeyError: {number}' if number else ""
        report.add("fuzz", Outcome(number, "data", "a name", 0.5 * number, 1 << 20, problem, str(folder)))
    assert report.failed == 4
    assert list(report.faults.values()) == [4]
    kept = sorted(path.name for path in (tmp_path / "report" / "fuzz").iterdir())
    assert kept == ["001-1", "001-2", "001-3"]
    text = (tmp_path / "report" / "fuzz" / "001-1" / "problem.txt").read_text()
    assert "--part fuzz --seed 7 --first 1 --cases 1" in text
    assert (tmp_path / "report" / "fuzz" / "001-1" / "files" / "input.txt").is_file()
    report.show()
    shown = capsys.readouterr().out
    assert "2.00" in shown
    assert "text.py, line 3, in read: KeyError" in shown


@pytest.mark.parametrize("action", ["open", "write", "create", "list"])
def test_the_watch_notices_every_access(action: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    with watched(tmp_path) as seen:
        assert seen == []
        if action == "open":
            os.close(os.open(tmp_path / "secret", os.O_RDONLY))
        elif action == "write":
            (tmp_path / "secret").write_text("y")
        elif action == "create":
            (tmp_path / "new").symlink_to("secret")
        else:
            os.listdir(tmp_path)
    assert seen
