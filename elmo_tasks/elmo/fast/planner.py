"""Which sentences are computed together, and where each of their tokens is read from and written to.

# B sentences of a group, T tokens of a sentence, N = sum of T + 1 over the group
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

_MOST_SENTENCES = 512  # of a group: bounds the memory of one step, and more rows make no product faster


def plan_groups(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Groups of sentences of like length, each with about as many tokens as the others.

    Sentences without tokens are in none. A sentence that is longer than the budget is a group of its own.

    Arguments:
        lengths: each sentence's tokens.
        token_budget: how many tokens a group has at most.

    Returns:
        numbers of sentences, the longest first.
    """
    order = sorted((number for number, length in enumerate(lengths) if length > 0), key=lambda each: -lengths[each])
    total = sum(lengths)
    wanted = total / max(1, -(-total // token_budget))  # so that no group is left with what is too little for it
    groups: list[list[int]] = []
    tokens = 0
    for number in order:
        full = not groups or len(groups[-1]) == _MOST_SENTENCES or tokens >= wanted
        if full or tokens + lengths[number] > token_budget:
            groups.append([])
            tokens = 0
        groups[-1].append(number)
        tokens += lengths[number]
    return groups


@dataclasses.dataclass(frozen=True)
class GroupPlan:
    """The steps that the two directions take through a group's sentences, which are sorted, longest first.

    A sentence's tokens are read after its first border; the second one is not, as nothing that is wanted depends on
    it. In each direction that is T + 1 steps.
    """

    batch_sizes: list[int]  # sentences that have a first, a second, ... step
    sentences: Tensor  # (N,) the sentence of each step, from 0
    steps: Tensor  # (N,) which of its sentence's steps it is: 0 for the border

    @classmethod
    def of(cls, lengths: Sequence[int]) -> GroupPlan:
        """The plan for sentences of so many tokens, longest first, none without tokens."""
        num_steps = torch.tensor(lengths) + 1  # (B,)
        goes_on = torch.arange(int(num_steps[0]))[:, None] < num_steps[None, :]  # (T + 1, B)
        steps, sentences = goes_on.nonzero().unbind(dim=1)
        return cls(goes_on.sum(dim=1).tolist(), sentences, steps)

    def positions(self, lengths: Tensor, backward: bool) -> Tensor:
        """(N,) the place of each step's token in its sentence; out of it, -1 or T, for the border."""
        return lengths[self.sentences] - self.steps if backward else self.steps - 1
