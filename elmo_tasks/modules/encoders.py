"""Encoders: from the vectors of single tokens to vectors of tokens in their context.

# B batch, T tokens, D features of the input, H features of the output
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from elmo_tasks import hooks
from elmo_tasks.config import Part
from elmo_tasks.modules.bidirectional import BiGru, BiLstm, lstm_inputs
from elmo_tasks.modules.dropout import Probability, VariationalDropout


class Encoder(nn.Module):
    """The base of all encoders."""

    output_size: int  # H

    @abstractmethod
    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Encodes sentences, each independently of the others and of the padding.

        Arguments:
            inputs: (B, T, D), finite in the padding too.
            mask: (B, T) bool, True at the tokens, which come before the padding; no sentence is empty.

        Returns:
            (B, T, H), zero in the padding.
        """


class EncoderConfig(Part):
    """The configuration of an encoder."""

    def build(self, input_size: int) -> Encoder:
        """Makes the encoder for inputs of `input_size` features."""
        raise NotImplementedError


hooks.announce(
    EncoderConfig.__name__, {"alternating_lstm": "elmo_tasks.modules.alternating_lstm:AlternatingLstmConfig"}
)


class StackedEncoder(Encoder):
    """LSTMs or GRUs, one on top of the other; the highest one gives the output.

    The paper's named entity recognizer has two layers of bidirectional LSTMs of 200 and 100 units (section 4; after
    Peters et al. 2017, "Semi-supervised sequence tagging with bidirectional language models"), and its reader for SQuAD
    single layers of bidirectional GRUs of 90 units (after Clark and Gardner 2017).
    """

    def __init__(self, input_size: int, config: _StackedConfig) -> None:
        super().__init__()
        sizes = [input_size, *(2 * size if config.bidirectional else size for size in config.hidden_sizes)]
        make: Callable[[int, int], nn.RNNBase] = functools.partial(config.kind, batch_first=True)
        if config.bidirectional:
            make = BiLstm if config.kind is nn.LSTM else BiGru
        layers = list(map(make, sizes, config.hidden_sizes))
        for layer in layers:
            initialize_gates(layer)
        self.layers = nn.ModuleList(layers)
        self.bidirectional = config.bidirectional
        self.dropout = VariationalDropout(config.dropout)
        self.output_size = sizes[-1]

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            inputs = self.dropout(inputs)
            if self.bidirectional:
                inputs = layer(inputs, mask)  # (B, T, 2 * units)
                continue
            with lstm_inputs(inputs) as inputs:  # the padding comes after all tokens and does not reach them
                inputs = layer(inputs)[0].masked_fill(~mask.unsqueeze(2), 0)  # (B, T, units)
        return inputs


class _StackedConfig(EncoderConfig):
    kind: ClassVar[type[nn.RNNBase]]

    hidden_sizes: tuple[PositiveInt, ...] = Field(
        (200, 100), min_length=1, description="units of one direction of each layer, the lowest layer first"
    )
    dropout: Probability = Field(0.0, description="variational dropout on the input of each layer, the lowest included")
    bidirectional: bool = Field(True, description="false: each layer only reads from the beginning to the end")

    def build(self, input_size: int) -> StackedEncoder:
        return StackedEncoder(input_size, self)


class StackedBiLstmConfig(_StackedConfig):
    """Bidirectional LSTMs, one on top of the other; each layer has its size."""

    kind = nn.LSTM
    type: Literal["stacked_bilstm"] = "stacked_bilstm"


class StackedBiGruConfig(_StackedConfig):
    """Bidirectional GRUs, one on top of the other; each layer has its size."""

    kind = nn.GRU
    type: Literal["stacked_bigru"] = "stacked_bigru"


@torch.no_grad()
def initialize_gates(layer: nn.RNNBase) -> None:
    """Draws new weights for each gate: recurrent ones orthogonal, input ones after Glorot. Biases are zero.

    Only an LSTM's forget gates start with a bias of one, so that a cell remembers until it has learned to forget
    (Jozefowicz et al. 2015).
    """
    num_gates = 4 if isinstance(layer, nn.LSTM) else 3
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            parameter.zero_()
            if num_gates == 4 and name.startswith("bias_ih"):  # the two biases of a gate add up
                parameter.chunk(num_gates)[1].fill_(1.0)  # input, forget, cell, output
            continue
        for gate in parameter.chunk(num_gates):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(gate)
