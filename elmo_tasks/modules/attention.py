"""Attention between two sequences: the softmax over real tokens alone, and the soft alignment that it makes.

# B batch, T1 tokens of the first sequence, T2 of the second, D features
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from elmo_tasks.batch import TensorRecord


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """The softmax over what is real; what is masked gets exactly 0 and passes no gradient back.

    Where all is masked, all is 0: there is nothing to spread a probability over, and no NaN to spoil a batch.

    Arguments:
        scores: any shape, floating point. What stands under the mask does not matter, be it infinite or NaN.
        mask: bool, of a shape that broadcasts to that of `scores`, True where a score is real.
        dim: the axis that sums to 1.

    Returns:
        Probabilities, of the shape of `scores`.
    """
    probabilities = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim)
    return probabilities.masked_fill(~mask, 0)


@dataclasses.dataclass(frozen=True)
class SoftAlignment(TensorRecord):
    """What each token of either sequence attends to in the other. Rows of padding are 0 throughout."""

    first_weights: Tensor  # (B, T1, T2), each real row a distribution over the second sequence's tokens
    second_weights: Tensor  # (B, T2, T1), each real row a distribution over the first sequence's tokens
    first: Tensor  # (B, T1, D), for each token of the first sequence, the second as it sees it
    second: Tensor  # (B, T2, D), for each token of the second sequence, the first as it sees it


def align(first: Tensor, second: Tensor, first_mask: Tensor, second_mask: Tensor) -> SoftAlignment:
    """Soft alignment of two sequences by dot products, in both directions.

    Source: ESIM, Chen et al. (2017), "Enhanced LSTM for Natural Language Inference", equations 11 to 13, which are
    the biattention of McCann et al. (2017), "Learned in Translation: Contextualized Word Vectors", section 5, as well;
    for a single text that network aligns the text with itself. Dot products are not scaled. What the papers leave to
    the reader: padding is neither attended to nor does it attend.

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
