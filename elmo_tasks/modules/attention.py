"""Attention between two sequences, and of a text to itself: by dot products or by trilinear scores.

# B batch, T1 tokens of the first sequence, T2 of the second, D features, V features of what is seen, by default D
# T tokens of a text or passage, A of them attend at once, Q tokens of a question
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor, nn

from elmo_tasks.text.tokens import TensorRecord

_SCORES_AT_ONCE = 1 << 24  # most scores of a text with itself in memory without gradients: 64 MB


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
    first: Tensor  # (B, T1, V), for each token of the first sequence, the second as it sees it
    second: Tensor  # (B, T2, V), for each token of the second sequence, the first as it sees it


def align(
    first: Tensor,
    second: Tensor,
    first_mask: Tensor,
    second_mask: Tensor,
    values: tuple[Tensor, Tensor] | None = None,
) -> SoftAlignment:
    """Soft alignment of two sequences by dot products, in both directions.

    Source: ESIM, Chen et al. (2017), "Enhanced LSTM for Natural Language Inference", equations 11 to 13, which are
    the biattention of McCann et al. (2017), "Learned in Translation: Contextualized Word Vectors", section 5, as well.
    Dot products are not scaled. The papers do not say it: padding is not attended to and does not attend.

    Arguments:
        first: (B, T1, D).
        second: (B, T2, D).
        first_mask: (B, T1) bool, True where a token is real.
        second_mask: (B, T2) bool.
        values: (B, T1, V) and (B, T2, V), what the tokens see of each other; by default `first` and `second`.
    """
    scores = first @ second.transpose(1, 2)  # (B, T1, T2)
    mask = first_mask.unsqueeze(2) & second_mask.unsqueeze(1)  # (B, T1, T2)
    first_weights = masked_softmax(scores, mask)  # (B, T1, T2)
    second_weights = masked_softmax(scores.transpose(1, 2), mask.transpose(1, 2))  # (B, T2, T1)
    first_values, second_values = values or (first, second)
    return SoftAlignment(
        first_weights=first_weights,
        second_weights=second_weights,
        first=first_weights @ second_values,  # (B, T1, V)
        second=second_weights @ first_values,  # (B, T2, V)
    )


def align_with_itself(text: Tensor, mask: Tensor) -> Tensor:
    """For each token of a text, the text as the token sees it: `align` of the text with itself, the same both ways.

    For memory see `attend_in_parts`.

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


class TrilinearScores(nn.Module):
    """The score of a pair of tokens x and y: a linear function of [x; y; x * y].

    Source: Seo et al. (2017), "Bidirectional Attention Flow for Machine Comprehension", section 2. The three parts are
    computed separately, so that no tensor of the size T1 x T2 x D is needed. It has no bias, since every softmax over
    the scores would cancel it.

    Arguments:
        size: D.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        bound = (6 / (3 * size + 1)) ** 0.5  # Glorot's, of a layer from 3D features to one
        self.first, self.second, self.product = (
            nn.Parameter(torch.empty(size).uniform_(-bound, bound)) for _ in range(3)
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """(B, T1, D), (B, T2, D) -> (B, T1, T2)."""
        products = first @ (second * self.product).transpose(1, 2)  # (B, T1, T2)
        return products + (first @ self.first).unsqueeze(2) + (second @ self.second).unsqueeze(1)


class AttentionFlow(nn.Module):
    """Joins a passage p with a question q: [p; c; p * c; p * s] for each token of the passage.

    c is the question as the token attends to it. s, the same for all tokens, is a weighted sum of the passage's tokens;
    the weight of a token comes from its best score with any token of the question.

    Source: Seo et al. 2017, section 2, "attention flow layer".

    Arguments:
        size: D, of passage and question alike.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scores = TrilinearScores(size)
        self.output_size = 4 * size

    def forward(self, passage: Tensor, question: Tensor, passage_mask: Tensor, question_mask: Tensor) -> Tensor:
        """Joins passages and questions.

        Arguments:
            passage: (B, T, D), finite in the padding too.
            question: (B, Q, D), likewise.
            passage_mask: (B, T) bool, True where a token is real; no passage is empty.
            question_mask: (B, Q) bool, likewise.

        Returns:
            (B, T, 4D); finite in the padding.
        """
        scores = self.scores(passage, question)  # (B, T, Q)
        mask = question_mask.unsqueeze(1)  # (B, 1, Q)
        attended = masked_softmax(scores, mask) @ question  # (B, T, D)
        best = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(dim=2)  # (B, T)
        summary = masked_softmax(best, passage_mask).unsqueeze(1) @ passage  # (B, 1, D)
        return torch.cat([passage, attended, passage * attended, passage * summary], dim=2)


class SelfAttention(nn.Module):
    """For each token of a passage, the weighted mean of the other tokens that it attends to.

    A token does not attend to itself. It may attend to nothing, which has a learned score: the weights sum to less
    than 1.

    Source: Clark and Gardner (2018), "Simple and Effective Multi-Paragraph Reading Comprehension", section 3.1; the
    score of nothing, which starts at -1, is only in the authors' code. For memory see `attend_in_parts`.

    Arguments:
        size: D.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scores = TrilinearScores(size)
        self.nothing = nn.Parameter(torch.tensor(-1.0))

    def forward(self, passage: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), finite in the padding too, and (B, T) bool -> (B, T, D), finite in the padding."""
        positions = torch.arange(mask.shape[1], device=mask.device)  # (T,)

        def attend(start: int, end: int) -> Tensor:
            scores = self.scores(passage[:, start:end], passage)  # (B, A, T)
            scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
            is_other = positions != positions[start:end].unsqueeze(1)  # (A, T)
            scores = scores.masked_fill(~(mask.unsqueeze(1) & is_other), torch.finfo(scores.dtype).min)
            nothing = self.nothing.to(scores.dtype).expand(*scores.shape[:2], 1)  # (B, A, 1)
            weights = torch.cat([scores, nothing], dim=2).softmax(dim=2)[:, :, :-1]  # (B, A, T)
            return weights.to(passage.dtype) @ passage  # (B, A, D)

        return attend_in_parts(attend, mask)
