"""Sentences of several lengths as packed sequences, so that padding takes no time and changes nothing.

# B batch, T positions of the longest sentence, N tokens of all sentences
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Packing:
    """Where the tokens of a padded batch are in packed sequences, read forwards and backwards.

    A packed sequence holds every sentence's first token, longest sentence first, then every second token, and so on.
    """

    order: Tensor  # (B,) the sentences' rows, longest first
    batch_sizes: list[int]  # sentences that have a first, a second, ... token
    forward: Tensor  # (N,) places in the flattened (B, T), each sentence read from its first token
    backward: Tensor  # (N,) places in the flattened (B, T), each sentence read from its last token

    @classmethod
    def of(cls, lengths: Tensor, padded_length: int) -> Packing:
        """The packing of sentences that are left-aligned in a (B, T) batch.

        Arguments:
            lengths: (B,) tokens of each sentence.
            padded_length: T.
        """
        sorted_lengths, order = lengths.sort(descending=True, stable=True)
        steps = torch.arange(padded_length, device=lengths.device)
        goes_on = steps[:, None] < sorted_lengths[None, :]  # (T, B)
        step, rank = goes_on.nonzero().unbind(dim=1)  # each (N,)
        first = order[rank] * padded_length
        batch_sizes = [size for size in goes_on.sum(dim=1).tolist() if size > 0]
        return cls(order, batch_sizes, first + step, first + sorted_lengths[rank] - 1 - step)
