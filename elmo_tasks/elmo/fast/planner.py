"""Which sentences are computed together, and where each of their tokens is read from and written to.

# B sentences of a group, T tokens of the longest, N steps: B more than the group has tokens
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.text.batches import batches_of_like_lengths

_MOST_SENTENCES = 512  # of a group: bounds the memory of one step, and more rows make no product faster


def plan_groups(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Groups of sentences of like length, each with about as many tokens as the others.

    Empty sentences are left out. A sentence that is longer than the budget is a group by itself.

    Arguments:
        lengths: each sentence's tokens.
        token_budget: the most tokens of a group.

    Returns:
        numbers of sentences, the longest first.
    """
    order = sorted((number for number, length in enumerate(lengths) if length > 0), key=lambda each: -lengths[each])
    total = sum(lengths)
    expected = total / max(1, -(-total // token_budget))  # so that the last group is not much smaller than the others
    return list(
        batches_of_like_lengths(
            lengths, order, max_rows=_MOST_SENTENCES, max_tokens=token_budget, enough_tokens=expected
        )
    )


@dataclasses.dataclass(frozen=True)
class GroupPlan:
    """The steps that a direction takes through a group's sentences, which are sorted, longest first.

    A direction reads the border at its own end of a sentence, and then the tokens. It does not read the other border,
    since no result depends on it. The steps are packed: first every sentence's first step, which is its border, then
    every sentence's second, and so on.
    """

    lengths: Tensor  # (B,) tokens of each sentence
    batch_sizes: list[int]  # sentences that have a first, a second, ... step
    sentences: Tensor  # (tokens,) from 0, of each step that reads a token
    steps: Tensor  # (tokens,) from 0, within its sentence

    @classmethod
    def of(cls, lengths: Sequence[int]) -> GroupPlan:
        """The plan for non-empty sentences of these lengths, the longest first."""
        num_tokens = torch.tensor(lengths)  # (B,)
        goes_on = torch.arange(lengths[0])[:, None] < num_tokens[None, :]  # (T, B)
        steps, sentences = goes_on.nonzero().unbind(dim=1)
        return cls(num_tokens, [len(lengths), *goes_on.sum(dim=1).tolist()], sentences, steps)

    @property
    def num_borders(self) -> int:
        """How many steps at the beginning are over sentence borders."""
        return len(self.lengths)

    def positions(self, backward: bool) -> Tensor:
        """(tokens,) the position in its sentence of each token, in the order in which a direction reads them."""
        return self.lengths[self.sentences] - 1 - self.steps if backward else self.steps

    def reads(self, backward: bool) -> Tensor:
        """(N,) which of the group's vectors each step reads: `<S>`, `</S>`, and then one sentence after the other."""
        firsts = self.lengths.cumsum(0) - self.lengths + 2  # (B,)
        borders = torch.full_like(firsts, int(backward))
        return torch.cat([borders, firsts[self.sentences] + self.positions(backward)])
