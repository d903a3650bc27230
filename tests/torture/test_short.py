"""A short torture with a fixed seed, in processes of their own. `make torture` runs for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def torture(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.torture", "--seed", "1", "--output", str(output), *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "--part fuzz --cases 400",
        "--part kills --part disk --part writers --cases 8",
        "--part hostile --cases 24",
    ],
)
def test_torture(arguments: str, tmp_path: Path) -> None:
    done = torture(tmp_path / "torture", *arguments.split())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failure_is_told_by_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.torture import __main__ as runner
    from tests.torture.sandbox import Case

    class Failing:
        name = "soak"

        def case(self, number: int) -> Case | None:
            return Case("kind", "case", lambda folder: int("x")) if number < 2 else None

    monkeypatch.setattr(runner, "import_everything", lambda: None)
    monkeypatch.setattr(runner, "make_workshop", lambda folder: None)
    monkeypatch.setattr(runner, "make_references", lambda folder: None)
    monkeypatch.setitem(runner._PARTS, "soak", lambda shop, options, seconds: Failing())
    output = tmp_path / "torture"
    for cases, code in (("2", 1), ("0", 0)):
        monkeypatch.setattr(sys, "argv", ["torture", "--part", "soak", "--cases", cases, "--output", str(output)])
        assert runner.main() == code
