"""A short torture with a fixed seed, in a process of its own. `make torture` runs for longer."""

import subprocess
from pathlib import Path

import pytest

from tests import command_server

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_torture(tmp_path: Path) -> None:
    parts = [f"--part={part}" for part in ("fuzz=200", "kills=5", "disk=12", "writers=5", "hostile=24")]
    program = "from tests.torture.__main__ import main; raise SystemExit(main())"
    command = [command_server.start(), "-c", program, "--seed", "1", "--output", str(tmp_path / "torture"), *parts]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" cases, 0 failed") == len(parts)
