"""Encoders: from the vectors of single tokens to vectors of tokens in their context.

# B batch, T tokens, D features of the input, H features of the output
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from elmo_tasks.config import Part
from elmo_tasks.modules.bidirectional import BidirectionalLayer
from elmo_tasks.modules.bigru import BiGru
from elmo_tasks.modules.bilstm import BiLstm
from elmo_tasks.modules.dropout import VariationalDropout


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


class _StackedConfig(EncoderConfig):
    """Bidirectional layers, one on top of the other, each of its own size."""

    hidden_sizes: Annotated[
        tuple[PositiveInt, ...],
        Field(min_length=1, description="units of one direction of each layer, the lowest layer first"),
    ] = (200, 100)
    dropout: Annotated[
        float, Field(ge=0, lt=1, description="variational dropout on the input of each layer, the lowest included")
    ] = 0.0


class StackedBiLstmConfig(_StackedConfig):
    """Bidirectional LSTMs, one on top of the other, each of its own size."""

    type: Literal["stacked_bilstm"] = "stacked_bilstm"

    def build(self, input_size: int) -> StackedBiLstm:
        return StackedBiLstm(input_size, self.hidden_sizes, self.dropout)


class StackedBiGruConfig(_StackedConfig):
    """Bidirectional GRUs, one on top of the other, each of its own size."""

    type: Literal["stacked_bigru"] = "stacked_bigru"

    def build(self, input_size: int) -> StackedBiGru:
        return StackedBiGru(input_size, self.hidden_sizes, self.dropout)


class _StackedEncoder(Encoder):
    """Bidirectional layers, one on top of the other; the output is that of the highest.

    Arguments:
        layers: from the lowest to the highest; each reads the output of the one below it.
        dropout: probability of variational dropout on the input of each layer.
    """

    def __init__(self, layers: Sequence[BidirectionalLayer], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = VariationalDropout(dropout)
        self.output_size = 2 * layers[-1].hidden_size

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            inputs = layer(self.dropout(inputs), mask)  # (B, T, 2 * units)
        return inputs


class StackedBiLstm(_StackedEncoder):
    """Bidirectional LSTMs, one on top of the other; the output is that of the highest.

    In the paper's named entity recognizer (section 4; after Peters et al. 2017, "Semi-supervised sequence tagging with
    bidirectional language models") two layers of 200 and 100 units.

    Arguments:
        input_size: D.
        hidden_sizes: units of one direction of each layer; H is twice the last.
        dropout: probability of variational dropout on the input of each layer.
    """

    def __init__(self, input_size: int, hidden_sizes: Sequence[int], dropout: float = 0.0) -> None:
        layers = [BiLstm(*sizes) for sizes in _layer_sizes(input_size, hidden_sizes)]
        for layer in layers:
            initialize_lstm(layer)
        super().__init__(layers, dropout)


class StackedBiGru(_StackedEncoder):
    """Bidirectional GRUs, one on top of the other; the output is that of the highest.

    In the paper's reader for SQuAD (after Clark and Gardner 2017) single layers of 90 units.

    Arguments:
        input_size: D.
        hidden_sizes: units of one direction of each layer; H is twice the last.
        dropout: probability of variational dropout on the input of each layer.
    """

    def __init__(self, input_size: int, hidden_sizes: Sequence[int], dropout: float = 0.0) -> None:
        layers = [BiGru(*sizes) for sizes in _layer_sizes(input_size, hidden_sizes)]
        for layer in layers:
            _initialize_gates(layer, 3)
        super().__init__(layers, dropout)


def _layer_sizes(input_size: int, hidden_sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The input size and the units of each layer."""
    return zip([input_size, *(2 * size for size in hidden_sizes[:-1])], hidden_sizes, strict=True)


@torch.no_grad()
def initialize_lstm(lstm: nn.LSTM) -> None:
    """Draws new weights for each gate: recurrent ones orthogonal, input ones after Glorot. Biases are zero.

    Only the forget gates start with a bias of one, so that a cell remembers until it has learned to forget (Jozefowicz
    et al. 2015).
    """
    _initialize_gates(lstm, 4)
    for name, parameter in lstm.named_parameters():
        if name.startswith("bias_ih"):  # the two biases of a gate add up
            parameter.chunk(4)[1].fill_(1.0)  # input, forget, cell, output


@torch.no_grad()
def _initialize_gates(layer: nn.RNNBase, num_gates: int) -> None:
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            parameter.zero_()
            continue
        for gate in parameter.chunk(num_gates):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(gate)
            else:
                nn.init.xavier_uniform_(gate)
