"""Feed-forward layers: linear, activation and dropout, one layer on top of the other.

# ... any leading axes, D features of the input, H features of the output
"""

from __future__ import annotations

import itertools
from typing import Literal

from pydantic import Field, PositiveInt
from torch import Tensor, nn

from elmo_tasks.config import Config
from elmo_tasks.modules.dropout import Dropout, Probability

Activation = Literal["relu", "tanh", "maxout"]


class FeedForwardConfig(Config):
    """Feed-forward layers, each with its size."""

    hidden_sizes: tuple[PositiveInt, ...] = Field(
        min_length=1, description="features of each layer's output, the first layer's first"
    )
    activation: Activation = Field(
        "relu", description="of each layer; maxout is the largest of `pieces` linear functions"
    )
    dropout: Probability = Field(0.0, description="on the output of each layer")
    pieces: int = Field(4, ge=2, description="linear functions per output of maxout; otherwise one")

    def build(self, input_size: int) -> FeedForward:
        """Makes the layers for inputs of `input_size` features."""
        return FeedForward(input_size, self.hidden_sizes, self.activation, self.dropout, self.pieces)


class FeedForward(nn.Module):
    """Linear layers, each followed by an activation and dropout.

    Maxout is that of Goodfellow et al. (2013), "Maxout Networks", but without batch normalization, which would make the
    result for an example depend on its batch in training.

    Arguments:
        input_size: D.
        hidden_sizes: features of each layer's output; H is the last.
        activation: of each layer.
        dropout: probability of dropout, on each layer's output.
        pieces: linear functions per output of maxout.
    """

    def __init__(
        self,
        input_size: int,
        hidden_sizes: tuple[int, ...],
        activation: Activation = "relu",
        dropout: float = 0.0,
        pieces: int = 4,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.pieces = pieces if activation == "maxout" else 1
        sizes = (input_size, *hidden_sizes)
        self.layers = nn.ModuleList(make_linear(size, self.pieces * new) for size, new in itertools.pairwise(sizes))
        self.dropout = Dropout(dropout)
        self.output_size = sizes[-1]

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., D) -> (..., H)."""
        for layer in self.layers:
            values = layer(inputs)
            if self.activation == "maxout":
                values = values.unflatten(-1, (-1, self.pieces)).amax(-1)
            else:
                values = values.relu() if self.activation == "relu" else values.tanh()
            inputs = self.dropout(values)
        return inputs


def make_linear(input_size: int, output_size: int, bias: bool = True) -> nn.Linear:
    """A linear layer with new weights, drawn after Glorot; biases, if it has any, are zero."""
    layer = nn.Linear(input_size, output_size, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
