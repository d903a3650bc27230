from __future__ import annotations

import subprocess
import sys

import pytest

STEPS = """
import resource, sys, torch
from elmo_tasks.pretraining.memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
fetched = []
for _ in range(8):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step = [torch.full((40, 1 << 20), 1, dtype=torch.uint8) for _ in range(4)]
    del step
    fetched.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(fetched))
"""


def pages_fetched_again(argument: str) -> int:
    """The fewest pages that a process fetches for some tensors, when it has freed others of their size before."""
    command = [sys.executable, "-c", STEPS, argument]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library is not glibc")
def test_memory_is_fetched_once_where_it_is_kept() -> None:
    assert 10 * pages_fetched_again("keep") < pages_fetched_again("return")
