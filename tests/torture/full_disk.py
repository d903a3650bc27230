"""Runs every writing command on a full disk: files that may not grow, and file systems without room.

The command must end with one line that names the path, and leave what was there before. With room again, it must go on
and give what an undisturbed run gives.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.torture.sandbox import Case, Cases
from tests.torture.scenarios import SCENARIOS, Scenario, assert_whole, finish, reference
from tests.torture.workshop import check_end, fork, wait_for

_SHARES = (0.0, 0.3, 0.6, 0.95)  # of the bytes that the command needs
_BLOCK = 4096


def full_disk(shop: Path, seed: int) -> Cases:
    """Each scenario with each amount of room, in random order; small file systems only for root."""
    limits = (_limit_files, _limit_system) if _can_mount(shop) else (_limit_files,)
    every = [(limit, scenario, share) for limit in limits for scenario in SCENARIOS for share in _SHARES]
    cases = random.Random(seed).sample(every, len(every))

    def case(number: int) -> Case | None:
        if number >= len(cases):
            return None
        limit, scenario, share = cases[number]
        return Case(scenario.name, lambda folder: limit(scenario, shop, folder, share))

    return case


def _limit_files(scenario: Scenario, shop: Path, folder: Path, share: float) -> None:
    """No file may become larger than a share of the largest one that the command writes."""
    scenario.prepare(shop, folder)
    most = max(path.stat().st_size for path in _files(reference(shop, scenario)))
    _check(scenario, shop, folder, *_run(scenario, shop, folder, int(share * most)))


def _limit_system(scenario: Scenario, shop: Path, folder: Path, share: float) -> None:
    """The disk has room for a share of all that the command writes."""
    with _file_system(folder, 64 << 20):
        scenario.prepare(shop, folder)
        used = _blocks(folder)
        room = used + int(share * (_blocks(reference(shop, scenario)) - used))
        _mount(folder, room, again=True)
        code, output = _run(scenario, shop, folder)
        _mount(folder, 64 << 20, again=True)
        _check(scenario, shop, folder, code, output)


def _check(scenario: Scenario, shop: Path, folder: Path, code: int, output: str) -> None:
    for error in check_end(code, output):
        assert str(folder) in error, f"the error does not name the path: {error}"
    assert_whole(folder)
    finish(scenario, shop, folder)


def _run(scenario: Scenario, shop: Path, folder: Path, most: int | None = None) -> tuple[int, str]:
    """The exit code and the output of a command, no file of which may become larger than `most` bytes."""

    def limited() -> int:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        return scenario.run(shop, folder)

    receive, send = os.pipe()
    pid = fork(limited, send)  # not to a file, which could be full too
    os.close(send)
    with os.fdopen(receive, errors="replace") as stream:
        output = stream.read()
    return wait_for(pid), output


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "log.txt"]


def _blocks(folder: Path) -> int:
    return sum(-(-path.stat().st_size // _BLOCK) * _BLOCK for path in _files(folder))


@contextlib.contextmanager
def _file_system(folder: Path, size: int) -> Iterator[None]:
    _mount(folder, size)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


def _mount(folder: Path, size: int, *, again: bool = False) -> None:
    options = f"{'remount,' if again else ''}size={max(size, _BLOCK)}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "torture", folder], check=True, capture_output=True)


def _can_mount(shop: Path) -> bool:
    folder = shop / "mounted"
    folder.mkdir(exist_ok=True)
    try:
        with _file_system(folder, 1 << 20):
            return True
    except subprocess.CalledProcessError:
        return False
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return False  # there is no such command
