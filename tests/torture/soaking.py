"""Many inputs in one process, whose memory must not grow."""

from __future__ import annotations

from pathlib import Path

from tests.torture.sandbox import Case

_PREPARATION = 600  # seconds, for training
_SHORT = 300  # seconds, in which caches still fill
_GROWTH_OF_SHORT = 0.2


class Soak:
    """A single case; see `tests.torture.soak`.

    Arguments:
        seconds: how long.
    """

    name = "soak"

    def __init__(self, seconds: float, seed: int) -> None:
        self._seconds = seconds
        self._seed = seed

    def case(self, number: int) -> Case | None:
        if number > 0:
            return None
        return Case("predict", f"{self._seconds:.0f} seconds", self._soak, self._seconds + _PREPARATION)

    def _soak(self, folder: Path) -> None:
        from tests.torture.soak import MOST_GROWTH, growth, soak

        rows = soak(self._seconds, self._seed)
        most = MOST_GROWTH if self._seconds >= _SHORT else _GROWTH_OF_SHORT
        assert growth(rows) <= most, f"memory has grown by {growth(rows):.1%}: {rows}"
