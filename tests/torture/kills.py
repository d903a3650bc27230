"""Stops every writing command at random moments, and calls it again.

Kills it, or makes the disk full: then, no file may grow above a bound. On a full disk, the command must end with one
line that names the path. The result of the next call must be that of an undisturbed run, bit for bit. No file under its
final name may be torn, and the temporary files of killed commands must be gone.
"""

import functools
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.torture.sandbox import Case, Cases
from tests.torture.scenarios import (
    SCENARIOS,
    Scenario,
    assert_whole,
    before_call,
    finish,
    let_a_day_pass,
    measures,
    reference,
)
from tests.torture.workshop import check_end, fork, wait_for

_SHARES = (0.0, 0.0, 0.3, 0.6, 0.95)  # of the largest file that a command writes, for a bound


def kills(shop: Path, seed: int) -> Cases:
    """Endless random cases."""
    return _cases(_kill, shop, seed)


def full_disk(shop: Path, seed: int) -> Cases:
    """As `kills`."""
    return _cases(_fill, shop, seed)


def _cases(stop: Callable[[Scenario, Path, Path, random.Random], None], shop: Path, seed: int) -> Cases:
    weights = [scenario.weight for scenario in SCENARIOS]

    def case(number: int) -> Case:
        draw = random.Random(f"{seed} {number}")
        scenario = draw.choices(SCENARIOS, weights)[0]
        return Case(scenario.name, lambda folder: stop(scenario, shop, folder, draw))

    return case


def _kill(scenario: Scenario, shop: Path, folder: Path, draw: random.Random) -> None:
    scenario.prepare(shop, folder)
    calls, seconds = measures(shop, scenario)
    for attempt in range(draw.choice((1, 1, 1, 2, 3))):
        command = functools.partial(scenario.run, shop, folder, again=attempt > 0)
        if draw.random() < 0.7:
            nth = draw.randint(1, calls)
            wait_for(fork(functools.partial(before_call, nth, command, _kill_this), folder / "log.txt"))
        else:
            pid = fork(command, folder / "log.txt")
            time.sleep(draw.uniform(0, seconds))
            os.kill(pid, signal.SIGKILL)
            wait_for(pid)
        let_a_day_pass(folder)
    finish(scenario, shop, folder)


def _fill(scenario: Scenario, shop: Path, folder: Path, draw: random.Random) -> None:
    scenario.prepare(shop, folder)
    calls, _ = measures(shop, scenario)
    files = (path for path in reference(shop, scenario).rglob("*") if path.is_file() and path.name != "log.txt")
    bound = int(draw.choice(_SHARES) * max(path.stat().st_size for path in files))
    full = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (bound, bound))
    command = functools.partial(scenario.run, shop, folder)
    receive, send = os.pipe()
    nth = draw.choice((1, draw.randint(1, calls)))
    pid = fork(lambda: before_call(nth, command, full), send)  # not to a file, which could be full too
    os.close(send)
    with os.fdopen(receive, errors="replace") as stream:
        output = stream.read()
    for error in check_end(wait_for(pid), output):
        assert str(folder) in error, f"the error does not name the path: {error}"
    assert_whole(folder)
    finish(scenario, shop, folder)


def _kill_this() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
