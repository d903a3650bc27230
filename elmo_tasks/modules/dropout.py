"""Variational dropout.

# B batch, T tokens, D features
"""

from __future__ import annotations

from torch import Tensor

from elmo_tasks.elmo.dropout import Dropout, dropout_factors


class VariationalDropout(Dropout):
    """Dropout that drops the same features at every token of a sentence, and others in the next sentence.

    Source: Gal and Ghahramani (2016), "A Theoretically Grounded Application of Dropout in Recurrent Neural Networks";
    here for the inputs and outputs of a recurrent network, not for its state. Kept features are scaled by 1 / (1 - p).

    Arguments:
        probability: of dropping a feature, in [0, 1).
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if not self.training or self.probability == 0:
            return inputs
        num_sentences, _, num_features = inputs.shape
        return inputs * dropout_factors((num_sentences, 1, num_features), self.probability, inputs)
