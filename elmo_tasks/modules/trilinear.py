"""Attention by trilinear scores: of a passage to a question and back, and of a passage to itself.

# B batch, T tokens of the passage, Q tokens of the question, T1 and T2 tokens of two sequences, D features
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn

from elmo_tasks.modules.attention import attend_in_parts, masked_softmax


class TrilinearScores(nn.Module):
    """The score of a pair of tokens x and y: a linear function of [x; y; x * y].

    Source: Seo et al. (2017), "Bidirectional Attention Flow for Machine Comprehension", section 2. The three parts are
    computed separately, so that no tensor of the size T1 x T2 x D is needed. There is no bias, since every softmax over
    the scores would cancel it.

    Arguments:
        size: D.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.empty(size))
        self.second = nn.Parameter(torch.empty(size))
        self.product = nn.Parameter(torch.empty(size))
        bound = (6 / (3 * size + 1)) ** 0.5  # Glorot's, of a layer from 3D features to one
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

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

    A token does not attend to itself. It may attend to nothing, which has a learned score of its own: the weights sum
    to less than 1.

    Source: Clark and Gardner (2018), "Simple and Effective Multi-Paragraph Reading Comprehension", section 3.1; the
    score of nothing, which starts at -1, is only in the authors' code. Without gradients, memory grows with T and not
    with its square.

    Arguments:
        size: D.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scores = TrilinearScores(size)
        self.nothing = nn.Parameter(torch.tensor(-1.0))

    def forward(self, passage: Tensor, mask: Tensor) -> Tensor:
        """Attends to the other tokens.

        Arguments:
            passage: (B, T, D), finite in the padding too.
            mask: (B, T) bool, True where a token is real.

        Returns:
            (B, T, D); finite in the padding.
        """
        return attend_in_parts(functools.partial(self._attend, passage, mask), mask)

    def _attend(self, passage: Tensor, mask: Tensor, start: int, end: int) -> Tensor:
        """(B, T1, D): the results of the tokens from `start` to `end`, exclusive."""
        scores = self.scores(passage[:, start:end], passage)  # (B, T1, T)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        places = torch.arange(mask.shape[1], device=mask.device)  # (T,)
        is_other = places != places[start:end].unsqueeze(1)  # (T1, T)
        scores = scores.masked_fill(~(mask.unsqueeze(1) & is_other), torch.finfo(scores.dtype).min)
        total = torch.logaddexp(scores.logsumexp(dim=2), self.nothing)  # (B, T1)
        return (scores - total.unsqueeze(2)).exp() @ passage
