"""Memory that goes back to the operating system, as the operating system counts it."""

from __future__ import annotations

import ctypes
import platform
import resource
from pathlib import Path

import pytest

from elmo_tasks.predictors.free_memory import release_memory

SIZE, COUNT = 16_384, 2_000  # 33 MB in pieces that malloc takes from its heap


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give memory back by themselves")
def test_free_memory_below_what_is_in_use_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    pieces = [libc.malloc(SIZE) for _ in range(COUNT)]
    for piece in pieces:
        ctypes.memset(piece, 1, SIZE)
    for piece in pieces[:-1]:
        libc.free(piece)
    held = resident_bytes()
    release_memory()
    assert held - resident_bytes() > SIZE * COUNT / 2
    libc.free(pieces[-1])
