"""Dropout that is fast on the CPU, and variational dropout.

# B batch, T tokens, D features
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

Probability = Annotated[float, Field(ge=0, lt=1)]  # of dropout and of other random choices in training
_BITS = 32  # of a random number that decides over one value


class Dropout(nn.Module):
    """In training, sets each value to zero with a probability and scales the others by 1 / (1 - probability).

    Like `nn.Dropout`, with other random numbers. On the CPU, `nn.Dropout` draws one random number per value, which
    takes about 10 ns each; for the wide vectors of a biLM that is more than the mix itself. This class draws 64 random
    bits at a time and uses 32 for each value.

    Arguments:
        probability: of dropping a value, in [0, 1).
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise ValueError(f"probability {probability}; expected at least 0 and less than 1")
        self.probability = probability

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or self.probability == 0:
            return inputs
        return inputs * dropout_factors(inputs.shape, self.probability, inputs)

    def extra_repr(self) -> str:
        return f"probability={self.probability}"


class VariationalDropout(Dropout):
    """Dropout that drops the same features at every token of a sentence, and others in the next sentence.

    Source: Gal and Ghahramani (2016), "A Theoretically Grounded Application of Dropout in Recurrent Neural Networks";
    here for the inputs and outputs of a recurrent network, not for its state. Kept features are scaled by 1 / (1 - p).
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if not self.training or self.probability == 0:
            return inputs
        num_sentences, _, num_features = inputs.shape
        return inputs * dropout_factors((num_sentences, 1, num_features), self.probability, inputs)


def dropout_factors(shape: Sequence[int], probability: float, like: Tensor) -> Tensor:
    """The factors of dropout: 0 or 1 / (1 - probability), with the type and the device of `like`."""
    if like.device.type != "cpu":
        return functional.dropout(like.new_ones(shape), probability)
    size = torch.Size(shape).numel()
    numbers = torch.empty(-(-size // 2), dtype=torch.int64).random_(-(2**63), None)
    uniform = numbers.view(torch.int32)[:size].view(*shape)  # all 2^32 values equally likely
    least_kept = min(round(probability * 2**_BITS), 2**_BITS - 1) - 2 ** (_BITS - 1)
    return (uniform >= least_kept).to(like.dtype).mul_(1 / (1 - probability))
