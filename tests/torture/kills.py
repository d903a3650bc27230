"""Stops every writing command at random moments, and calls it again.

Kills it, or makes the disk full: then, no file may grow above a bound. On a full disk, the command must end with one
line that names the path. The result of the next call must be that of an undisturbed run, bit for bit. No file under its
final name may be torn, and the temporary files of killed commands must be gone.
"""

import builtins
import functools
import io
import json
import os
import random
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.torture.sandbox import Case, Cases
from tests.torture.scenarios import SCENARIOS, Scenario, assert_whole, finish, let_a_day_pass, reference
from tests.torture.workshop import check_end, fork, wait_for

_SHARES = (0.0, 0.0, 0.3, 0.6, 0.95)  # of the largest file that a command writes, for a bound
_CALLS = (
    *((os, name) for name in ("replace", "rename", "fsync", "unlink", "rmdir", "mkdir", "open", "chmod", "utime")),
    (io, "open"),
    (builtins, "open"),
)


def kills(shop: Path, seed: int) -> Cases:
    """Endless random cases; see `scenarios.make_references` for what must be there first."""
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
    calls, seconds = _measure(scenario, shop)
    for attempt in range(draw.choice((1, 1, 1, 2, 3))):
        command = functools.partial(scenario.run, shop, folder, again=attempt > 0)
        if draw.random() < 0.7:
            nth = draw.randint(1, calls)
            wait_for(fork(functools.partial(_before_call, nth, command, _kill_this), folder / "log.txt"))
        else:
            pid = fork(command, folder / "log.txt")
            time.sleep(draw.uniform(0, seconds))
            os.kill(pid, signal.SIGKILL)
            wait_for(pid)
        let_a_day_pass(folder)
    finish(scenario, shop, folder)


def _fill(scenario: Scenario, shop: Path, folder: Path, draw: random.Random) -> None:
    scenario.prepare(shop, folder)
    calls, _ = _measure(scenario, shop)
    files = (path for path in reference(shop, scenario).rglob("*") if path.is_file() and path.name != "log.txt")
    bound = int(draw.choice(_SHARES) * max(path.stat().st_size for path in files))
    full = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (bound, bound))
    command = functools.partial(scenario.run, shop, folder)
    receive, send = os.pipe()
    nth = draw.choice((1, draw.randint(1, calls)))
    pid = fork(lambda: _before_call(nth, command, full), send)  # not to a file, which could be full too
    os.close(send)
    with os.fdopen(receive, errors="replace") as stream:
        output = stream.read()
    for error in check_end(wait_for(pid), output):
        assert str(folder) in error, f"the error does not name the path: {error}"
    assert_whole(folder)
    finish(scenario, shop, folder)


def _kill_this() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _before_call(nth: int, command: Callable[[], Any], action: Callable[[], object], counts: Path | None = None) -> Any:
    """Runs a command, and an action right before its nth call of a function that changes files.

    Arguments:
        counts: where the number of calls is written at the end.
    """
    made = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **settings: Any) -> Any:
            nonlocal made
            mode = settings.get("mode", arguments[1] if len(arguments) > 1 else "r")
            if function.__name__ != "open" or not isinstance(mode, str) or set(mode) & set("wax+"):
                made += 1
                if made == nth:
                    action()
            return function(*arguments, **settings)

        return call

    for module, name in _CALLS:
        setattr(module, name, watched(getattr(module, name)))
    code = command()
    if counts:
        counts.write_text(json.dumps(made))
    return code


@functools.cache
def _measure(scenario: Scenario, shop: Path) -> tuple[int, float]:
    """How many calls that change files an undisturbed run makes, and its seconds."""
    with tempfile.TemporaryDirectory(dir=shop) as name:
        here = Path(name)
        scenario.prepare(shop, here)
        started = time.monotonic()
        command = functools.partial(scenario.run, shop, here)
        counts, log = here / "calls.txt", here / "log.txt"
        if code := wait_for(fork(lambda: _before_call(0, command, _kill_this, counts), log)):
            raise RuntimeError(f"{scenario.name} ended with {code}: {log.read_text()}")
        return json.loads(counts.read_text()), time.monotonic() - started
