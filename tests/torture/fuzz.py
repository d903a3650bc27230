"""Damaged, odd and wrong files of every format that the package reads, each with a random change.

What must come of each is a result, or one of the errors that the command line prints as one line.
"""

import os
import random
from pathlib import Path

from tests.torture import files, inputs
from tests.torture.mutations import Target
from tests.torture.sandbox import Case, Cases, allowed


def fuzz(shop: Path, seed: int, kinds: tuple[str, ...] = ("",)) -> Cases:
    """Endless random cases; the number and the seed decide each.

    Arguments:
        shop: the folder that `make_workshop` has filled.
        kinds: only the targets whose names begin with one of these.
    """
    every = [*inputs.targets(shop), *files.targets(shop)]
    targets = [target for target in every if target.kind.startswith(kinds)]
    weights = [target.weight for target in targets]

    def case(number: int) -> Case:
        draw = random.Random(f"{seed} {number}")
        target = draw.choices(targets, weights)[0]
        return Case(target.kind, lambda folder: _try(target, folder, draw))

    return case


def _try(target: Target, folder: Path, draw: random.Random) -> None:
    os.environ["ELMO_TASKS_CACHE"] = str(folder / "cache")
    path = folder / target.file
    path.parent.mkdir(parents=True, exist_ok=True)
    target.write(path, target, draw)
    allowed(lambda: target.run(path))
