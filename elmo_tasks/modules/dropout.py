"""Variational dropout.

# B batch, T tokens, D features
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class VariationalDropout(nn.Module):
    """Dropout that drops the same features at every token of a sentence, others in every sentence.

    Source: Gal and Ghahramani (2016), "A Theoretically Grounded Application of Dropout in Recurrent Neural Networks";
    here for the inputs and outputs of a recurrent network, not for its state. What is kept is scaled by 1 / (1 - p).

    Arguments:
        probability: of a feature to be dropped, in [0, 1).
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise ValueError(f"probability {probability}; wanted at least 0 and less than 1")
        self.probability = probability

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if not self.training or self.probability == 0:
            return inputs
        kept = torch.ones_like(inputs[:, :1])  # (B, 1, D)
        return inputs * functional.dropout(kept, self.probability)

    def extra_repr(self) -> str:
        return f"probability={self.probability}"
