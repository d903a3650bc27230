"""A disk that becomes full. Each command that writes is on one in `tests.torture`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROBLEM = r"cannot be written: File too large.*; expected at least [\d,]+ bytes"


@pytest.mark.slow
def test_a_process_ends_without_a_crash(tmp_path: Path) -> None:
    """HDF5 writes once more when the process ends."""
    (tmp_path / "text").write_text("Mary went to Boeing .\n" * 100)
    arguments = f"embed {tmp_path / 'text'} --output {tmp_path / 'out'}/vectors.hdf5"
    # -B: Python would keep a truncated file of compiled code.
    shell = f"ulimit -f 64; exec {sys.executable} -B -m elmo_tasks {arguments} --quiet"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert re.fullmatch(rf"error: .*: {PROBLEM}.*\n", done.stderr)
