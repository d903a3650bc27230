"""AllenNLP's search for the best tags of its models of semantic roles, to the last digit.

# B batch, T tokens, K tags, S = K + 2 states: the tags, the start and the end
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.modules.crf import TransitionConstraints

_START_SCORE = 100_000.0

Ties = Literal["first", "topk"]


@torch.no_grad()
def allennlp_best_tags(scores: Tensor, mask: Tensor, constraints: TransitionConstraints, ties: Ties) -> Tensor:
    """The allowed tag sequence of each sentence with the highest sum of scores, in single precision.

    Source: `viterbi_decode` of AllenNLP 0.9 and 2.10. It begins with a score of 100,000, so that sums keep two digits
    after the point: of sequences whose sums are nearly equal, it takes any, and this function takes the same.

    Arguments:
        scores: (B, T, K).
        mask: (B, T) bool.
        constraints: what a sentence may begin with, and what may follow what.
        ties: which of equal scores is taken: the first, as until 1.0, or the one that `torch.topk` takes. Both are the
            same from 62 tags on.

    Returns:
        the tags, (B, T) int64, 0 in the padding.
    """
    scores, mask = scores.float().cpu(), mask.cpu()
    num_rows, num_tokens, num_tags = scores.shape
    end = num_tags + 1
    between = _log(functional.pad(constraints.between.cpu(), (0, 2, 0, 2)))  # (S, S)
    between[-2] = _log(functional.pad(constraints.start.cpu(), (0, 2)))
    between[:num_tags, end] = 0
    emissions = functional.pad(scores, (0, 2), value=float("-inf"))  # (B, T, S)
    sums = torch.zeros(num_rows, num_tags + 2)
    sums[:, -2] = _START_SCORE
    steps: list[Tensor] = []  # the best state before each, (B, S)
    for token in range(num_tokens + 1):
        paths = sums.unsqueeze(2) + between  # (B, S, S)
        is_first = ties == "first" or num_tags >= 62  # where both are the same, and this is faster
        best, before = paths.max(dim=1) if is_first else _top(paths)
        steps.append(before)
        if token < num_tokens:
            sums = emissions[:, token] + best
    lengths = mask.sum(1)
    tags = torch.zeros(num_rows, num_tokens, dtype=torch.int64)
    state = torch.full((num_rows,), end)
    for token in range(num_tokens, 0, -1):
        state = torch.where(lengths == token, end, state)
        before = steps[token].gather(1, state.unsqueeze(1)).squeeze(1)
        state = torch.where(lengths < token, state, before)
        tags[:, token - 1] = state
    return tags.masked_fill(~mask, 0)


def _top(paths: Tensor) -> tuple[Tensor, Tensor]:
    best, before = paths.topk(1, dim=1)
    return best.squeeze(1), before.squeeze(1)


def _log(allowed: Tensor) -> Tensor:
    """0 where something is allowed, minus infinity where not."""
    return torch.zeros(allowed.shape).masked_fill(~allowed, float("-inf"))
