"""Kills every writing command, at random moments and right before a write, and calls it again.

The result must be that of an undisturbed run, bit for bit. No file under its final name may be torn, and the temporary
files of killed commands must be gone.
"""

from __future__ import annotations

import builtins
import functools
import io
import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.torture.sandbox import Case, Cases
from tests.torture.scenarios import SCENARIOS, Scenario, finish, reference
from tests.torture.workshop import fork, wait_for

_CALLS = (
    *((os, name) for name in ("replace", "rename", "fsync", "unlink", "rmdir", "mkdir", "open", "chmod", "utime")),
    (io, "open"),
    (builtins, "open"),
)


def kills(shop: Path, seed: int) -> Cases:
    """Endless random cases; see `scenarios.make_references` for what must be there first."""
    weights = [scenario.weight for scenario in SCENARIOS]

    def case(number: int) -> Case:
        draw = random.Random(f"{seed} {number}")
        scenario = draw.choices(SCENARIOS, weights)[0]
        return Case(scenario.name, lambda folder: _kill(scenario, shop, folder, draw))

    return case


def _kill(scenario: Scenario, shop: Path, folder: Path, draw: random.Random) -> None:
    scenario.prepare(shop, folder)
    calls, seconds = _measure(scenario, shop)
    for attempt in range(draw.choice((1, 1, 1, 2, 3))):
        command = functools.partial(scenario.run, shop, folder, again=attempt > 0)
        if draw.random() < 0.7:
            nth = draw.randint(1, calls)
            wait_for(fork(functools.partial(before_call, nth, command), folder / "log.txt"))
        else:
            pid = fork(command, folder / "log.txt")
            time.sleep(draw.uniform(0, seconds))
            os.kill(pid, signal.SIGKILL)
            wait_for(pid)
    finish(scenario, shop, folder)


def before_call(nth: int, command: Callable[[], Any], counts: Path | None = None) -> Any:
    """Runs a command that is killed right before its nth call of a function that changes files.

    Arguments:
        counts: where the number of calls of a command that was not killed is written.
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
                    os.kill(os.getpid(), signal.SIGKILL)
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
    here = reference(shop, scenario).with_suffix(".measured")
    here.mkdir(exist_ok=True)
    scenario.prepare(shop, here)
    started = time.monotonic()
    command = functools.partial(scenario.run, shop, here)
    counts = here / "calls.txt"
    log = here / "log.txt"
    if code := wait_for(fork(lambda: before_call(0, command, counts), log)):
        raise RuntimeError(f"{scenario.name} ended with {code}: {log.read_text()}")
    return json.loads(counts.read_text()), time.monotonic() - started
