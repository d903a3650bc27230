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

from tests.torture.sandbox import Case
from tests.torture.scenarios import SCENARIOS, Scenario, assert_whole, finish, reference
from tests.torture.workshop import check_end, fork, wait_for

_SHARES = (0.0, 0.3, 0.6, 0.95)  # of the bytes that the command needs
_BLOCK = 4096


class FullDisk:
    """Each scenario with each amount of room, in random order; small file systems only for root."""

    name = "disk"

    def __init__(self, shop: Path, seed: int) -> None:
        self._shop = shop
        kinds = ("file size", "file system") if _can_mount(shop) else ("file size",)
        cases = [(kind, scenario, share) for kind in kinds for scenario in SCENARIOS for share in _SHARES]
        self._cases = random.Random(seed).sample(cases, len(cases))

    def case(self, number: int) -> Case | None:
        if number >= len(self._cases):
            return None
        kind, scenario, share = self._cases[number]
        run = self._limit_files if kind == "file size" else self._limit_system
        name = f"{kind}, {share:.0%} of the room of {scenario.name}"
        return Case(scenario.name, name, lambda folder: run(scenario, folder, share))

    def _limit_files(self, scenario: Scenario, folder: Path, share: float) -> None:
        """No file may become larger than a share of the largest one that the command writes."""
        scenario.prepare(self._shop, folder)
        most = max(path.stat().st_size for path in _files(reference(self._shop, scenario)))
        code, output = _run(scenario, self._shop, folder, int(share * most))
        self._check(scenario, folder, code, output)

    def _limit_system(self, scenario: Scenario, folder: Path, share: float) -> None:
        """The disk has room for a share of all that the command writes."""
        with _file_system(folder, 64 << 20):
            scenario.prepare(self._shop, folder)
            used = _blocks(folder)
            room = used + int(share * (_blocks(reference(self._shop, scenario)) - used))
            _mount(folder, room, again=True)
            code, output = _run(scenario, self._shop, folder)
            _mount(folder, 64 << 20, again=True)
            self._check(scenario, folder, code, output)

    def _check(self, scenario: Scenario, folder: Path, code: int, output: str) -> None:
        for error in check_end(code, output):
            assert str(folder) in error, f"the error does not name the path: {error}"
        assert_whole(folder)
        finish(scenario, self._shop, folder)


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
