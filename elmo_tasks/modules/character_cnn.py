"""Vectors of words from their characters.

# U distinct words, C characters of the longest, E features of a character, W characters of a window, F filters,
# R windows of all words
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.config import Config
from elmo_tasks.elmo.dropout import Dropout

Activation = Literal["relu", "tanh", "none"]
_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "none": nn.Identity(),
}


class CharacterCnnConfig(Config):
    """Vectors of words from their characters: a convolution and the maximum over the word.

    The defaults are those of the paper's named entity recognizer. Its reader for SQuAD has 20 features per character
    and 100 filters of width 5.
    """

    embedding_size: Annotated[PositiveInt, Field(description="features of a character")] = 16
    filters: Annotated[PositiveInt, Field(description="filters of the convolution: features of a word")] = 128
    width: Annotated[PositiveInt, Field(description="characters that a filter sees at once")] = 3
    activation: Annotated[Activation, Field(description="applied after the maximum")] = "relu"
    dropout: Annotated[float, Field(ge=0, lt=1, description="dropout on the characters' features")] = 0.0

    def build(self, num_characters: int) -> CharacterCnn:
        """Makes the module for a vocabulary of `num_characters` rows."""
        return CharacterCnn(num_characters, self)


class CharacterCnn(nn.Module):
    """A convolution over a word's characters and the maximum of each filter over the word.

    Source: Ma and Hovy (2016), "End-to-end Sequence Labeling via Bi-directional LSTM-CNNs-CRF", with its dropout before
    the convolution. Filters see `width - 1` zero vectors on each side of the word, so that they can recognize its
    beginning and end, and short words need no special case. Only windows with a character of the word count, so that a
    longer word in the same batch changes nothing.

    Arguments:
        num_characters: rows of the vocabulary's characters; row 0 is padding.
        config: E, F, W and the rest.
    """

    def __init__(self, num_characters: int, config: CharacterCnnConfig) -> None:
        super().__init__()
        self.width = config.width
        self.activation = config.activation
        self.output_size = config.filters
        self.embedding = nn.Embedding(num_characters, config.embedding_size, padding_idx=0)
        self.dropout = Dropout(config.dropout)
        self.convolution = nn.Conv1d(config.embedding_size, config.filters, config.width)
        # Characters start as Ma and Hovy's do, filters after Glorot.
        bound = (3 / config.embedding_size) ** 0.5  # a variance of 1 / E
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        nn.init.zeros_(self.embedding.weight[0])
        nn.init.xavier_uniform_(self.convolution.weight)
        nn.init.zeros_(self.convolution.get_parameter("bias"))

    def forward(self, characters: Tensor) -> Tensor:
        """The words' vectors.

        Arguments:
            characters: (U, C) int64, one distinct word per row, 0 in the padding, which comes last.

        Returns:
            (U, F); zero for a row without characters.
        """
        margin = self.width - 1
        padded = functional.pad(characters, (margin, margin))  # (U, C + 2 W - 2)
        embedded = self.dropout(self.embedding(padded)).flatten(0, 1)  # (U * (C + 2 W - 2), E)
        words, rows = self._windows(characters)  # (R,), (R, W)
        windows = functional.embedding(rows, embedded).flatten(1)  # (R, W * E)
        kernel = self.convolution.weight.transpose(1, 2).flatten(1)  # (F, W * E)
        features = functional.linear(windows, kernel, self.convolution.bias)  # (R, F)
        maxima = features.new_full((len(characters), self.output_size), -torch.inf)  # (U, F)
        maxima = maxima.scatter_reduce(0, words.unsqueeze(1).expand_as(features), features, "amax")
        return _ACTIVATIONS[self.activation](maxima).masked_fill((characters == 0).all(1, keepdim=True), 0)

    def _windows(self, characters: Tensor) -> tuple[Tensor, Tensor]:
        """Every window that has a character of its word: the word, (R,), and the rows of its padded characters, (R, W).

        Most words are much shorter than the longest. A convolution over all their padding would be most of the work.
        """
        margin = self.width - 1
        lengths = (characters != 0).sum(1, keepdim=True)  # (U, 1)
        num_windows = (lengths + margin).masked_fill(lengths == 0, 0)
        places = torch.arange(characters.shape[1] + margin, device=characters.device)  # of a window's first character
        words, places = (places < num_windows).nonzero(as_tuple=True)  # (R,), (R,)
        first_rows = words * (characters.shape[1] + 2 * margin) + places
        return words, first_rows.unsqueeze(1) + torch.arange(self.width, device=characters.device)
