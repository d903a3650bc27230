"""Variational dropout.

# B batch, T tokens, D features
"""

from __future__ import annotations

from torch import Tensor, nn


class VariationalDropout(nn.Dropout1d):
    """Dropout that drops the same features at every token of a sentence, and others in the next sentence.

    Source: Gal and Ghahramani (2016), "A Theoretically Grounded Application of Dropout in Recurrent Neural Networks";
    here for the inputs and outputs of a recurrent network, not for its state. Kept features are scaled by 1 / (1 - p).
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return super().forward(inputs.transpose(1, 2)).transpose(1, 2)
