"""Two commands at the same time that write to the same place.

At least one must succeed, the others may end with one line of error, and the result must be that of a single command.
"""

import functools
import random
import time
from pathlib import Path

from tests.torture.sandbox import Case, Cases
from tests.torture.scenarios import SCENARIOS, Scenario, assert_same, assert_whole, finish
from tests.torture.workshop import check_end, fork, wait_for

_BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
_TWICE = (
    *("train", "train", "train --resume", "train --force", "pretrain", "pretrain --resume", "fill the layer cache"),
    *("archive", "predict from an archive", "embed hdf5", "embed parts", "evaluate"),
)
# What reads a run while it is trained, and the file that it writes.
_READERS = {
    "archive": ("archive {here}/run {here}/x.tar.gz", "x.tar.gz"),
    "predict": ("predict {here}/run {shop}/text.txt --output {here}/x.jsonl", "x.jsonl"),
}


def writers(shop: Path, seed: int) -> Cases:
    """Endless random cases."""

    def case(number: int) -> Case:
        draw = random.Random(f"{seed} {number}")
        if number % (len(_TWICE) + 2) < len(_TWICE):
            scenario = _BY_NAME[_TWICE[number % (len(_TWICE) + 2)]]
            return Case(f"{scenario.name}, twice", lambda folder: _twice(scenario, shop, folder, draw))
        reader = list(_READERS)[number % 2]
        return Case(f"{reader} during train", lambda folder: _read(reader, shop, folder, draw))

    return case


def _twice(scenario: Scenario, shop: Path, folder: Path, draw: random.Random) -> None:
    scenario.prepare(shop, folder)
    first = fork(functools.partial(scenario.run, shop, folder), folder / "log.txt")
    time.sleep(draw.choice((0.0, draw.uniform(0, 0.5))))
    second = fork(functools.partial(scenario.run, shop, folder), folder / "second.txt")
    codes = [_ended(pid, folder / log) for pid, log in ((first, "log.txt"), (second, "second.txt"))]
    logs = "\n\n".join((folder / log).read_text(errors="replace")[-1500:] for log in ("log.txt", "second.txt"))
    assert 0 in codes, f"both failed\n{logs}"
    assert_whole(folder)
    assert_same(scenario, shop, folder)
    finish(scenario, shop, folder)


def _read(reader: str, shop: Path, folder: Path, draw: random.Random) -> None:
    """Reads a run again and again while another process trains it."""
    train = _BY_NAME["train"]
    command, output = _READERS[reader]
    reading = Scenario(reader, command, (output,))
    training = fork(functools.partial(train.run, shop, folder), folder / "log.txt")
    for _ in range(3):
        time.sleep(draw.uniform(0, 0.4))
        pid = fork(functools.partial(reading.run, shop, folder), folder / "second.txt")
        _ended(pid, folder / "second.txt")
        assert_whole(folder)
    assert _ended(training, folder / "log.txt") == 0, (folder / "log.txt").read_text()[-3000:]
    assert_same(train, shop, folder)
    finish(train, shop, folder)


def _ended(pid: int, log: Path) -> int:
    """The exit code; fails if a command did not end as it should."""
    code = wait_for(pid)
    check_end(code, log.read_text(errors="replace"))
    return code
