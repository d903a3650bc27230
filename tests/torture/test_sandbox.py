"""The harness itself: every kind of fault is seen, and the cases after it are tried too."""

import ctypes
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.errors import DataError, ElmoTasksError
from tests.torture import sandbox
from tests.torture.sandbox import Case, Outcome, allowed, run_cases


def fail(error: BaseException) -> None:
    raise error


def outcomes(runs: list[Callable[[Path], object]], scratch: Path, seconds: float = 10.0) -> list[Outcome]:
    cases = [Case("kind", run, seconds) for run in runs]
    return list(run_cases(lambda number: cases[number] if number < len(cases) else None, scratch))


def test_an_error_a_crash_a_warning_and_too_much_memory_are_failures(tmp_path: Path) -> None:
    runs: list[Callable[[Path], object]] = [
        lambda folder: None,
        lambda folder: fail(KeyError("gone")),
        lambda folder: ctypes.string_at(0),
        lambda folder: warnings.warn("overflow", RuntimeWarning, stacklevel=1),
        lambda folder: bytearray(8 << 30),
        lambda folder: (folder / "file").write_text("x") and os._exit(0),
        lambda folder: (folder / "file").write_text("x"),
    ]
    found = outcomes(runs, tmp_path)
    assert [outcome.number for outcome in found] == [*range(len(runs))]
    fine, error, crash, warning, memory, ended, last = (outcome.problem for outcome in found)
    assert fine == last == ""
    assert error.strip().endswith("KeyError: 'gone'")
    assert "SIGSEGV" in crash
    assert "RuntimeWarning: overflow" in warning
    assert "MemoryError" in memory
    assert "in the middle of the case" in ended
    assert list(tmp_path.rglob("file")) == [Path(found[5].folder) / "file"]  # only the files of failed cases stay


@pytest.mark.slow
def test_cases_that_take_long_or_wait_forever_are_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 5)

    def work(folder: Path) -> None:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass

    runs: list[Callable[[Path], object]] = [lambda folder: time.sleep(60), work, lambda folder: None]
    waits, works, fine = (outcome.problem for outcome in outcomes(runs, tmp_path, 0.05))
    assert "still running" in waits
    assert works == "0 seconds of CPU time"
    assert fine == ""


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
