"""Pooling: from the vectors of a text's tokens to one vector, which padding does not change.

# B batch, T tokens, D features
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_tasks.modules.attention import masked_softmax


def max_pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """The maximum of each feature over a text's tokens.

    Arguments:
        vectors: (B, T, D); values in the padding do not matter.
        mask: (B, T) bool, True at the tokens; no text is empty.

    Returns:
        (B, D).
    """
    return vectors.masked_fill(~mask.unsqueeze(2), torch.finfo(vectors.dtype).min).amax(1)


def min_pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """The minimum of each feature over a text's tokens; as `max_pool`."""
    return vectors.masked_fill(~mask.unsqueeze(2), torch.finfo(vectors.dtype).max).amin(1)


def mean_pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """The mean of each feature over a text's tokens; as `max_pool`."""
    return vectors.masked_fill(~mask.unsqueeze(2), 0).sum(1) / mask.sum(1, keepdim=True)


class AttentivePooling(nn.Module):
    """The weighted sum of a text's vectors. The weights are a softmax over the tokens' products with a learned vector.

    Source: McCann et al. (2017), "Learned in Translation: Contextualized Word Vectors", section 5, equation 13. Their
    bias, the same for all tokens, is left out, since a softmax does not depend on it.

    Arguments:
        size: D.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = nn.Linear(size, 1, bias=False)
        nn.init.xavier_uniform_(self.score.weight)

    def forward(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pools the vectors of texts.

        Arguments:
            vectors: (B, T, D), finite in the padding too.
            mask: (B, T) bool.

        Returns:
            (B, D), and the weights, (B, T), zero in the padding.
        """
        weights = masked_softmax(self.score(vectors).squeeze(2), mask)  # (B, T)
        return (weights.unsqueeze(1) @ vectors).squeeze(1), weights
