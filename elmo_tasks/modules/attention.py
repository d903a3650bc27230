"""Attention between two sequences: a softmax over real tokens only, and soft alignment.

# B batch, T1 tokens of the first sequence, T2 of the second, D features
# T tokens of a text with itself, A of them attend at once
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from elmo_tasks.text.tokens import TensorRecord

_SCORES_AT_ONCE = 1 << 24  # bounds the scores of a text with itself that are in memory without gradients: 64 MB


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """The softmax over real scores. Masked ones get exactly 0 and no gradient.

    Where all scores are masked, all results are 0 and not NaN.

    Arguments:
        scores: any shape, floating point. Masked values do not matter, not even infinity or NaN.
        mask: bool, of a shape that broadcasts to that of `scores`, True where a score is real.
        dim: the axis that sums to 1.

    Returns:
        Probabilities, of the shape of `scores`.
    """
    probabilities = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim)
    return probabilities.masked_fill(~mask, 0)


def attend_in_parts(attend: Callable[[int, int], Tensor], mask: Tensor) -> Tensor:
    """The attention of a text's tokens to the text itself, computed for some tokens at a time.

    Without gradients, memory then grows with T and not with its square.

    Arguments:
        attend: computes the results (B, A, D) of the tokens from a start to an end, exclusive.
        mask: (B, T) bool.

    Returns:
        (B, T, D).
    """
    at_once = max(1, _SCORES_AT_ONCE // mask.numel())
    return torch.cat([attend(start, start + at_once) for start in range(0, mask.shape[1], at_once)], dim=1)


@dataclasses.dataclass(frozen=True)
class SoftAlignment(TensorRecord):
    """What each token of either sequence attends to in the other. Rows of padding are 0."""

    first_weights: Tensor  # (B, T1, T2), each real row a distribution over the second sequence's tokens
    second_weights: Tensor  # (B, T2, T1), each real row a distribution over the first sequence's tokens
    first: Tensor  # (B, T1, D), for each token of the first sequence, the second as it sees it
    second: Tensor  # (B, T2, D), for each token of the second sequence, the first as it sees it


def align(first: Tensor, second: Tensor, first_mask: Tensor, second_mask: Tensor) -> SoftAlignment:
    """Soft alignment of two sequences by dot products, in both directions.

    Source: ESIM, Chen et al. (2017), "Enhanced LSTM for Natural Language Inference", equations 11 to 13, which are
    the biattention of McCann et al. (2017), "Learned in Translation: Contextualized Word Vectors", section 5, as well.
    Dot products are not scaled. The papers do not say it: padding is not attended to and does not attend.

    Arguments:
        first: (B, T1, D).
        second: (B, T2, D).
        first_mask: (B, T1) bool, True where a token is real.
        second_mask: (B, T2) bool.
    """
    scores = first @ second.transpose(1, 2)  # (B, T1, T2)
    mask = first_mask.unsqueeze(2) & second_mask.unsqueeze(1)  # (B, T1, T2)
    first_weights = masked_softmax(scores, mask)  # (B, T1, T2)
    second_weights = masked_softmax(scores.transpose(1, 2), mask.transpose(1, 2))  # (B, T2, T1)
    return SoftAlignment(
        first_weights=first_weights,
        second_weights=second_weights,
        first=first_weights @ second,  # (B, T1, D)
        second=second_weights @ first,  # (B, T2, D)
    )


def align_with_itself(text: Tensor, mask: Tensor) -> Tensor:
    """For each token of a text, the text as the token sees it: `align` of the text with itself, the same both ways.

    Without gradients, memory grows with T and not with its square.

    Arguments:
        text: (B, T, D).
        mask: (B, T) bool, True where a token is real.

    Returns:
        (B, T, D), zero in the padding.
    """

    def attend(start: int, end: int) -> Tensor:
        scores = text[:, start:end] @ text.transpose(1, 2)  # (B, A, T)
        return masked_softmax(scores, mask[:, start:end].unsqueeze(2) & mask.unsqueeze(1)) @ text  # (B, A, D)

    return attend_in_parts(attend, mask)
