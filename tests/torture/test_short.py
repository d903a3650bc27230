"""A short torture with a fixed seed, in processes of their own. `make torture` runs for longer."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture import __main__ as runner
from tests.torture.sandbox import Case

REPOSITORY = Path(__file__).resolve().parents[2]


def torture(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.torture", "--seed", "1", "--output", str(output), *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "--part fuzz --cases 300",
        "--part kills --part disk --part writers --cases 6",
        "--part hostile --cases 24",
    ],
)
def test_torture(arguments: str, tmp_path: Path) -> None:
    done = torture(tmp_path / "torture", *arguments.split())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failure_is_told_by_the_exit_code_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("import_everything", "make_workshop", "make_references"):
        monkeypatch.setattr(runner, name, lambda *arguments: None)
    failing = Case("kind", lambda folder: int((folder / "input").write_text("x") * "x"))
    monkeypatch.setitem(runner._PARTS, "soak", lambda *arguments: lambda number: failing)
    output = tmp_path / "torture"
    for cases, code in (("0", 0), ("5", 1)):
        monkeypatch.setattr(sys, "argv", ["torture", "--part", "soak", "--cases", cases, "--output", str(output)])
        assert runner.main() == code
    assert "soak: 5 cases, 5 failed\n    5  soak, kind: ValueError" in capsys.readouterr().out
    assert sorted(path.name for path in (output / "soak").iterdir()) == ["001-1", "001-2", "001-3"]
    assert "--part soak --seed 1 --first 0 --cases 1\n" in (output / "soak" / "001-1" / "problem.txt").read_text()
    assert (output / "soak" / "001-1" / "files" / "input").is_file()
