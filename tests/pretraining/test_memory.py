from __future__ import annotations

import subprocess
import sys

import pytest

PIECES = """
import resource, sys, torch
from elmo_tasks.pretraining.memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros(64, 1 << 20, dtype=torch.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages_fetched_again(argument: str) -> int:
    """How many pages a process fetches for a piece of 64 MB when it has freed another one before."""
    command = [sys.executable, "-c", PIECES, argument]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library is not glibc")
def test_memory_is_fetched_once_where_it_is_kept() -> None:
    assert 5 * pages_fetched_again("keep") < pages_fetched_again("return")
