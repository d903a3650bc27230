"""Batches of tokens as tensors: tasks collate them, embedders read them, the loop moves them to a device.

# B batch, T tokens of the longest sentence, U distinct words of the batch and one row of padding, C characters
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

_BatchT = TypeVar("_BatchT", bound="TensorRecord")


def mask_of_lengths(lengths: Tensor | Sequence[int], longest: int) -> Tensor:
    """(B, longest) bool, True for the first tokens of each sentence, as many as its length (B,)."""
    lengths = torch.as_tensor(lengths, dtype=torch.int64)
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(1)


@dataclasses.dataclass(frozen=True)
class TensorRecord:
    """A frozen dataclass of named tensors and other values, which can be moved to a device at once."""

    def to(self: _BatchT, device: torch.device | str) -> _BatchT:
        """The same record with every tensor on `device`, including those of nested records."""
        return self._changed(lambda tensor: tensor.to(device, non_blocking=tensor.is_pinned()))

    def pin_memory(self: _BatchT) -> _BatchT:
        """The same record in memory from which a GPU can copy while it computes; a `DataLoader` calls it."""
        return self._changed(Tensor.pin_memory)

    def _changed(self: _BatchT, change: Callable[[Tensor], Tensor]) -> _BatchT:
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, TensorRecord):
                changes[field.name] = value._changed(change)
            elif isinstance(value, Tensor):
                changes[field.name] = change(value)
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class Tokens(TensorRecord):
    """The tokens of a batch of sentences in every form that embedders need.

    Characters are stored once for each distinct word: `characters[distinct]` has shape (B, T, C).
    """

    texts: list[list[str]]  # the tokens as written, without padding: what the biLM reads
    mask: Tensor  # (B, T) bool, True where a token is real
    words: Tensor  # (B, T) int64, rows of the vocabulary's words, 0 for padding
    distinct: Tensor  # (B, T) int64, rows of `characters`, 0 for padding
    characters: Tensor  # (U, C) int64, rows of the vocabulary's characters, 0 for padding; row 0 is all padding
    scales: Tensor | None = None  # (B, T), what an embedder multiplies the tokens' vectors with; None: nothing

    def __len__(self) -> int:
        return len(self.texts)


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
