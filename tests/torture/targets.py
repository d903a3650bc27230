"""What a target of the fuzzer is."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.torture.mutations import mutate


def write_changed(path: Path, target: Target, draw: random.Random) -> None:
    """Writes a changed seed of the target."""
    path.write_bytes(target.changed(draw))


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of file and what reads it.

    Arguments:
        kind: the row of the table that counts its cases.
        file: the name of the file, below the folder of a case.
        form: see `mutate`.
        seeds: valid contents.
        run: reads the file.
        weight: how often it is drawn, compared with others. Those that take long have less.
        write: writes the file.
    """

    kind: str
    file: str
    form: str
    seeds: Sequence[bytes]
    run: Callable[[Path], object]
    weight: float = 1.0
    write: Callable[[Path, Target, random.Random], None] = write_changed

    def changed(self, draw: random.Random) -> bytes:
        return mutate(self.seeds, self.form, draw)
