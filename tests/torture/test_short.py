"""A short torture with a fixed seed, in processes of their own. `make torture` runs for longer."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "--part fuzz --cases 150",
        "--part kills --part disk --part writers --cases 4",
        "--part hostile --cases 24",
    ],
)
def test_torture(arguments: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.torture", "--seed", "1", "--output", str(tmp_path / "torture")]
    done = subprocess.run([*command, *arguments.split()], cwd=REPOSITORY, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
