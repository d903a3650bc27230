"""LSTM state that is carried over from one batch to the next, row by row.

# B batch, P output features, H cells
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.elmo.lstm import LstmState


class CarriedState:
    """Remembers, for each row of a batch, the states in which its last sentence ended.

    Source: bilm-tf's `BidirectionalLanguageModelGraph` and AllenNLP's `_EncoderBase`. A smaller batch takes and
    updates the first rows and leaves the others as they are; rows that have never been used start at zero. No gradient
    flows through what is carried over.
    """

    def __init__(self) -> None:
        self._states: list[LstmState] | None = None

    def clear(self) -> None:
        """Forgets everything: the next batch starts at zero."""
        self._states = None

    def take(self, initial: Sequence[LstmState]) -> list[LstmState]:
        """The states for a batch, one per layer of both directions.

        Arguments:
            initial: the states of zeros of the same batch, (B, P) and (B, H) each.
        """
        if self._states is None:
            return list(initial)
        return [
            (_first_rows(hidden, zero_hidden), _first_rows(cell, zero_cell))
            for (hidden, cell), (zero_hidden, zero_cell) in zip(self._states, initial, strict=True)
        ]

    def put(self, final: Sequence[LstmState]) -> None:
        """Remembers the states at the end of a batch, in the order of `take`."""
        known = self._states or final
        self._states = [
            (_replace_first_rows(old_hidden, hidden), _replace_first_rows(old_cell, cell))
            for (old_hidden, old_cell), (hidden, cell) in zip(known, final, strict=True)
        ]


def _first_rows(known: Tensor, zeros: Tensor) -> Tensor:
    rows = len(zeros)
    return torch.cat([known[:rows].to(zeros), zeros[len(known) :]])


def _replace_first_rows(known: Tensor, new: Tensor) -> Tensor:
    new = new.detach()
    return torch.cat([new, known[len(new) :].to(new)])
