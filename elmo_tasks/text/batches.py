"""Batches of sequences of like lengths, so that little of a padded batch is padding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence


def batches_of_like_lengths(
    lengths: Sequence[int],
    order: Iterable[int] | None = None,
    *,
    max_rows: float = math.inf,
    max_padded: float = math.inf,
    max_tokens: float = math.inf,
    enough_tokens: float = math.inf,
    least_share: float = 0.0,
) -> Iterator[list[int]]:
    """Cuts rows that are sorted by length into batches, each as large as the limits allow.

    A row that exceeds a limit by itself becomes a separate batch.

    Arguments:
        lengths: the tokens of each row.
        order: the rows to put into batches, in this order; by default all of them, the longest first.
        max_rows: most rows of a batch.
        max_padded: most tokens of a batch, padding included: its rows times the length of the longest.
        max_tokens: most tokens of a batch, padding not included.
        enough_tokens: a batch with this many tokens takes no further row.
        least_share: the least length of a row, as a share of the longest one before it in the batch.

    Yields:
        the rows of each batch, in the given order.
    """
    if order is None:
        order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    batch: list[int] = []
    longest = tokens = 0
    for row in order:
        length = lengths[row]
        reach = max(longest, length)
        if batch and (
            len(batch) >= max_rows
            or (len(batch) + 1) * reach > max_padded
            or tokens >= enough_tokens
            or tokens + length > max_tokens
            or length < least_share * longest
        ):
            yield batch
            batch, reach, tokens = [], length, 0
        batch.append(row)
        longest = reach
        tokens += length
    if batch:
        yield batch
