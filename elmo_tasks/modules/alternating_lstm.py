"""LSTM layers in alternating directions with highway connections, which torch's own LSTMs do not have.

A layer computes one product for the inputs of all time steps. Each step then needs one more product and a few
operations on the gates.

# B batch, T time steps (tokens), D features of the input, H units; gates in the order: enter, candidate, forget, leave,
# carry (the highway's)
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.modules.bidirectional import reordered, reversal
from elmo_tasks.modules.dropout import Probability, dropout_factors
from elmo_tasks.modules.encoders import Encoder, EncoderConfig

_GATES = 5


class HighwayConfig(EncoderConfig):
    dropout: Probability = Field(
        0.0, description="variational dropout on the state and output of each layer, the highest included"
    )
    highway_bias: bool = Field(
        False, description="adds a bias to the highway's part of the output, as some models of AllenNLP have it"
    )


class AlternatingLstmConfig(HighwayConfig):
    """LSTM layers with highway connections, the first reading forward, the second backward, and so on."""

    type: Literal["alternating_lstm"] = "alternating_lstm"
    hidden_size: PositiveInt = Field(300, description="units of each layer")
    num_layers: PositiveInt = Field(8, description="layers of both directions together")

    def build(self, input_size: int) -> AlternatingLstm:
        return AlternatingLstm(input_size, self)


class AlternatingLstm(Encoder):
    """A stack of `HighwayLstm` layers; the first reads each sentence from its beginning, the second from its end.

    Source: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2.1; the alternating
    directions after Zhou and Xu (2015).
    """

    def __init__(self, input_size: int, config: AlternatingLstmConfig) -> None:
        super().__init__()
        self.output_size = config.hidden_size
        sizes = [input_size, *[config.hidden_size] * (config.num_layers - 1)]
        self.layers = nn.ModuleList(
            HighwayLstm(size, config.hidden_size, config.dropout, config.highway_bias) for size in sizes
        )

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        order = reversed_order(mask)  # (T * B,)
        values = inputs.transpose(0, 1)  # (T, B, D)
        for number, layer in enumerate(self.layers):
            if number > 0:  # every layer reads in the direction opposite to the one before
                values = reordered(values, order)
            values = layer(values)  # (T, B, H)
        if len(self.layers) % 2 == 0:
            values = reordered(values, order)
        return values.transpose(0, 1).masked_fill(~mask.unsqueeze(2), 0)  # (B, T, H)


def reversed_order(mask: Tensor) -> Tensor:
    """(T * B,): the rows of (T, B) in the order in which each sentence is read from its end; see `reordered`."""
    num_sentences, num_tokens = mask.shape
    positions = reversal(mask.sum(1), num_tokens)  # (T, B)
    return (positions * num_sentences + torch.arange(num_sentences, device=mask.device)).flatten()


class HighwayLstm(nn.Module):
    """One LSTM layer with a highway connection, from the first time step to the last.

    With the gates i, f, o and r, the candidate g, and x and h read at the time t (He et al. 2017, section 2.1, after
    Zhang et al. 2016, "Highway Long Short-Term Memory RNNs for Distant Speech Recognition"):

        i, f, o, r = sigmoid(W x_t + U h_(t-1) + b),  g = tanh(W x_t + U h_(t-1) + b)
        c_t = f c_(t-1) + i g
        h_t = z (r o tanh(c_t) + (1 - r) (W_h x_t + b_h))

    b_h, the bias of the highway, is not in the source and only there on request.

    z is the variational dropout of Gal and Ghahramani (2016): 0 or 1 / (1 - p) for each unit, drawn once per sentence.
    It acts on both the layer's output and its state. As in the source, weights start orthogonal for each gate, and
    biases at zero, except those of f, which start at one.

    Under autocast the products and the output have autocast's type. States have at least single precision.

    Arguments:
        input_size: D.
        hidden_size: H.
        dropout: p.
        highway_bias: whether there is a b_h.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float = 0.0, highway_bias: bool = False) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_weight = nn.Parameter(torch.empty((_GATES + 1) * hidden_size, input_size))  # W, then W_h
        self.recurrent_weight = nn.Parameter(torch.empty(_GATES * hidden_size, hidden_size))  # U
        self.bias = nn.Parameter(torch.zeros(_GATES * hidden_size))
        self.highway_bias = nn.Parameter(torch.zeros(hidden_size)) if highway_bias else None
        with torch.no_grad():
            for block in (*self.input_weight.split(hidden_size), *self.recurrent_weight.split(hidden_size)):
                nn.init.orthogonal_(block)
            self.bias.chunk(_GATES)[2].fill_(1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """(T, B, D) -> (T, B, H); a time step depends only on those before it."""
        hidden_size = self.recurrent_weight.shape[1]
        of_highway = self.bias.new_zeros(hidden_size) if self.highway_bias is None else self.highway_bias
        # The inputs' part of all sums, for all time steps at once.
        projected = functional.linear(inputs, self.input_weight, torch.cat([self.bias, of_highway]))  # (T, B, 6H)
        starts, carried = projected.split([_GATES * hidden_size, hidden_size], dim=2)
        hidden = projected.new_zeros(inputs.shape[1], hidden_size)  # (B, H)
        cell = hidden.to(torch.promote_types(hidden.dtype, torch.float32))  # (B, H)
        drops = self.training and self.dropout > 0
        factors = dropout_factors(cell.shape, self.dropout, cell) if drops else None  # (B, H)
        outputs = []
        for start, highway in zip(starts.unbind(), carried.unbind(), strict=True):
            sums = (start + functional.linear(hidden, self.recurrent_weight)).to(cell.dtype)  # (B, 5H)
            enter, candidate, forget, leave, carry = sums.chunk(_GATES, dim=1)  # each (B, H)
            cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            output = torch.lerp(highway.to(cell.dtype), leave.sigmoid() * cell.tanh(), carry.sigmoid())
            hidden = (output if factors is None else output * factors).to(hidden.dtype)
            outputs.append(hidden)
        return torch.stack(outputs)
