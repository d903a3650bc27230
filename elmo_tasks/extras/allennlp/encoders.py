"""Encoders of tokens and of characters that models of AllenNLP have, in addition to those of the paper.

# B batch, T tokens of the longest text, D features of the input, H of the output; U distinct words, C characters of the
# longest, E features of a character, F features of a word
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from elmo_tasks.modules.alternating_lstm import HighwayConfig, HighwayLstm, reversed_order
from elmo_tasks.modules.bidirectional import lstm_inputs, reordered
from elmo_tasks.modules.character_cnn import CharacterEncoder, CharacterEncoderConfig
from elmo_tasks.modules.encoders import Encoder, EncoderConfig, initialize_gates


class PassThrough(Encoder):
    """No encoder: the vectors as they are, for those that already know their context, such as a transformer's."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.output_size = input_size

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        return inputs.masked_fill(~mask.unsqueeze(2), 0)


class PassThroughConfig(EncoderConfig):
    """No encoder: the head reads the token vectors as they are."""

    type: Literal["pass_through"] = "pass_through"

    def build(self, input_size: int) -> PassThrough:
        return PassThrough(input_size)


class StackedHighwayBiLstmConfig(HighwayConfig):
    """Bidirectional LSTMs with highway connections, one on top of the other."""

    type: Literal["stacked_highway_bilstm"] = "stacked_highway_bilstm"
    hidden_size: Annotated[PositiveInt, Field(description="units of one direction of each layer")] = 200
    num_layers: Annotated[PositiveInt, Field(description="layers of two directions")] = 2

    def build(self, input_size: int) -> StackedHighwayBiLstm:
        return StackedHighwayBiLstm(input_size, self)


class StackedHighwayBiLstm(Encoder):
    """A stack of bidirectional layers, each of two `HighwayLstm`, one of which reads each sentence from its end.

    Source: AllenNLP's `StackedBidirectionalLstm`, the encoder of its fine-grained named entity recognizer. Dropout is
    that of `HighwayLstm`; AllenNLP drops only what goes back into a layer, and its default drops nothing.
    """

    def __init__(self, input_size: int, config: StackedHighwayBiLstmConfig) -> None:
        super().__init__()
        self.output_size = 2 * config.hidden_size
        sizes = [input_size, *[self.output_size] * (config.num_layers - 1)]
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(HighwayLstm(size, config.hidden_size, config.dropout, config.highway_bias) for size in sizes)
            for _ in range(2)
        )

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        order = reversed_order(mask)  # (T * B,)
        values = inputs.transpose(0, 1)  # (T, B, D)
        for forward, backward in zip(self.forward_layers, self.backward_layers, strict=True):
            read = reordered(backward(reordered(values, order)), order)
            values = torch.cat([forward(values), read], dim=2)  # (T, B, H)
        return values.transpose(0, 1).masked_fill(~mask.unsqueeze(2), 0)  # (B, T, H)


class NgramCnn(Encoder):
    """Convolutions over windows of tokens, with ReLU, for a maximum over the tokens.

    Source: Kim (2014), "Convolutional Neural Networks for Sentence Classification". A token has the features of the
    windows that begin there; they are zero where a window would reach beyond the text, which changes no maximum.

    Arguments:
        input_size: D.
        filters: of each width.
        widths: tokens of a window.
    """

    def __init__(self, input_size: int, filters: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(input_size, filters, width) for width in widths)
        self.output_size = filters * len(widths)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        vectors = inputs.masked_fill(~mask.unsqueeze(2), 0).transpose(1, 2)  # (B, D, T)
        lengths, places = mask.sum(1, keepdim=True), torch.arange(mask.shape[1], device=mask.device)
        outputs = []
        for convolution in self.convolutions:
            width = convolution.get_parameter("weight").shape[2]
            features = convolution(functional.pad(vectors, (0, width - 1))).relu().transpose(1, 2)  # (B, T, filters)
            outputs.append(features.masked_fill((places > lengths - width).unsqueeze(2), 0))
        return torch.cat(outputs, dim=2)


class NgramCnnConfig(EncoderConfig):
    """Convolutions over windows of tokens, as in AllenNLP's `cnn`; pool their `max`."""

    type: Literal["cnn"] = "cnn"
    filters: PositiveInt = Field(100, description="filters of each width")
    widths: Annotated[tuple[PositiveInt, ...], Field(min_length=1, description="tokens of a window")] = (2, 3, 4, 5)

    def build(self, input_size: int) -> NgramCnn:
        return NgramCnn(input_size, self.filters, self.widths)


class CharacterLstmConfig(CharacterEncoderConfig):
    """Vectors of words from their characters: the last states of an LSTM that reads the word."""

    type: Literal["lstm"] = "lstm"
    hidden_size: Annotated[PositiveInt, Field(description="units of one direction: features of a word")] = 128
    num_layers: Annotated[PositiveInt, Field(description="layers, the highest of which gives the features")] = 1
    bidirectional: Annotated[bool, Field(description="also reads from the end: twice as many features")] = False

    def build(self, num_characters: int) -> CharacterLstm:
        return CharacterLstm(num_characters, self)


class CharacterLstm(CharacterEncoder):
    """The output of an LSTM after a word's last character and, if it is bidirectional, after the first.

    Source: Lample et al. (2016), "Neural Architectures for Named Entity Recognition", section 4.1, and AllenNLP's
    fine-grained named entity recognizer.

    Arguments:
        num_characters: rows of the vocabulary's characters; row 0 is padding.
        config: E, F and the rest.
    """

    def __init__(self, num_characters: int, config: CharacterLstmConfig) -> None:
        super().__init__(num_characters, config)
        self.output_size = config.hidden_size * (2 if config.bidirectional else 1)
        sizes = config.embedding_size, config.hidden_size, config.num_layers
        self.lstm = nn.LSTM(*sizes, batch_first=True, bidirectional=config.bidirectional)
        initialize_gates(self.lstm)

    def forward(self, characters: Tensor) -> Tensor:
        if characters.shape[1] == 0:
            return self.embedding.weight.new_zeros(len(characters), self.output_size)
        lengths = (characters != 0).sum(1)  # (U,)
        embedded = self.dropout(self.embedding(characters))  # (U, C, E)
        cpu_lengths = lengths.clamp(min=1).cpu()  # packing needs them there, and no empty words
        with lstm_inputs(embedded) as embedded:
            packed = pack_padded_sequence(embedded, cpu_lengths, batch_first=True, enforce_sorted=False)
            _, (states, _) = self.lstm(packed)  # (layers * directions, U, units)
        directions = 2 if self.lstm.bidirectional else 1
        vectors = states[-directions:].transpose(0, 1).flatten(1)  # (U, F)
        return vectors.masked_fill((lengths == 0).unsqueeze(1), 0)
