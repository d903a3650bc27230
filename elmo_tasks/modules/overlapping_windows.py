"""How a sequence that is longer than a network reads at once is cut into windows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator


def overlapping_windows(length: int, size: int) -> Iterator[tuple[slice, slice]]:
    """The windows of `size` positions of a sequence, each with the part of it that is used.

    Windows overlap by half of their size; the last one ends with the sequence. An overlap is used up to its middle
    from the earlier window, then from the later one, so the parts make the sequence. A sequence that is not longer than
    a window is the only one.
    """
    last = max(0, length - size)
    starts = [*range(0, last, size - size // 2), last]
    borders = [0, *((earlier + size + later) // 2 for earlier, later in itertools.pairwise(starts)), length]
    for start, used in zip(starts, itertools.pairwise(borders), strict=True):
        yield slice(start, min(length, start + size)), slice(*used)
