"""Vectors of words from their characters, by a convolution.

# U distinct words, C characters of the longest, E features of a character, F features of a word, W characters of a
# window, R windows of all words, B batch, T tokens of the longest sentence
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.config import Part
from elmo_tasks.modules.dropout import Dropout, Probability
from elmo_tasks.text.tokens import Tokens

Padding = Literal["both_sides", "none", "right"]
Activation = Literal["relu", "tanh", "none"]
_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "none": nn.Identity(),
}


class CharacterEncoderConfig(Part):
    """How vectors of words are made from their characters."""

    default_type: ClassVar[str | None] = "cnn"

    embedding_size: PositiveInt = Field(16, description="features of a character")
    dropout: Probability = Field(0.0, description="dropout on the characters' features")

    def build(self, num_characters: int) -> CharacterEncoder:
        """Makes the module for a vocabulary of `num_characters` rows."""
        raise NotImplementedError


class CharacterEncoder(nn.Module):
    """The base of what makes vectors of words from their characters.

    Arguments:
        num_characters: rows of the vocabulary's characters; row 0 is padding.
        config: E and the dropout.
    """

    output_size: int  # F

    def __init__(self, num_characters: int, config: CharacterEncoderConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_characters, config.embedding_size, padding_idx=0)
        self.dropout = Dropout(config.dropout)
        # Characters start as Ma and Hovy's do.
        bound = (3 / config.embedding_size) ** 0.5  # a variance of 1 / E
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        nn.init.zeros_(self.embedding.weight[0])

    @abstractmethod
    def forward(self, characters: Tensor) -> Tensor:
        """The words' vectors.

        Arguments:
            characters: (U, C) int64, one distinct word per row, 0 in the padding, which comes last.

        Returns:
            (U, F); zero for a row without characters.
        """

    def embed(self, tokens: Tokens) -> Tensor:
        """The vectors of a batch's tokens, (B, T, F), each word's computed once; zero in the padding."""
        return functional.embedding(tokens.distinct, self(tokens.characters))


class CharacterCnnConfig(CharacterEncoderConfig):
    """Vectors of words from their characters: a convolution and the maximum over the word.

    The defaults are those of the paper's named entity recognizer. Its reader for SQuAD has 20 features per character
    and 100 filters of width 5.
    """

    type: Literal["cnn"] = "cnn"
    filters: PositiveInt = Field(128, description="filters of the convolution: features of a word")
    width: PositiveInt = Field(3, description="characters that a filter sees at once")
    activation: Activation = Field("relu", description="applied after the maximum")
    padding: Padding = Field(
        "both_sides",
        description="zeros next to a word: on 'both_sides', so that filters see its beginning and end; 'none', as "
        "in AllenNLP since 1.2.1; to the 'right', as in AllenNLP before: up to the longest word of the sentence, "
        "on which a word's vector then depends",
    )
    token_min_padding_length: NonNegativeInt = Field(
        0, description="with padding to the right, words are padded to at least this many characters"
    )

    def build(self, num_characters: int) -> CharacterCnn:
        return CharacterCnn(num_characters, self)


class CharacterCnn(CharacterEncoder):
    """A convolution over a word's characters and the maximum of each filter over the word.

    Source: Ma and Hovy (2016), "End-to-end Sequence Labeling via Bi-directional LSTM-CNNs-CRF", with its dropout before
    the convolution. Filters see `width - 1` zero vectors on each side of the word, so that they can recognize its
    beginning and end, and short words need no special case. Only windows with a character of the word count, so that a
    longer word in the same batch changes nothing.

    Two other paddings are those of AllenNLP's `CnnEncoder`. With `none`, only windows within the word count; a
    shorter word's vector is zero. With `right`, all windows up to the longest word of the sentence count: so it was in
    AllenNLP before 1.2.1, for a sentence that is the only one in its batch.
    """

    def __init__(self, num_characters: int, config: CharacterCnnConfig) -> None:
        super().__init__(num_characters, config)
        self.width = config.width
        self.activation = config.activation
        self.padding = config.padding
        self.shortest = max(config.width, config.token_min_padding_length)  # with padding to the right
        self.output_size = config.filters
        self.convolution = nn.Conv1d(config.embedding_size, config.filters, config.width)
        nn.init.xavier_uniform_(self.convolution.weight)  # filters start after Glorot
        nn.init.zeros_(self.convolution.get_parameter("bias"))

    def forward(self, characters: Tensor) -> Tensor:
        margin = self.width - 1 if self.padding == "both_sides" else 0
        padded = functional.pad(characters, (margin, margin))  # (U, C + 2 * margin)
        embedded = self.dropout(self.embedding(padded)).flatten(0, 1)  # (U * (C + 2 * margin), E)
        words, rows, num_windows = self._windows(characters, margin)  # (R,), (R, W), (U, 1)
        windows = functional.embedding(rows, embedded).flatten(1)  # (R, W * E)
        kernel = self.convolution.weight.transpose(1, 2).flatten(1)  # (F, W * E)
        features = functional.linear(windows, kernel, self.convolution.bias)  # (R, F)
        maxima = features.new_full((len(characters), self.output_size), -torch.inf)  # (U, F)
        maxima = maxima.scatter_reduce(0, words.unsqueeze(1).expand_as(features), features, "amax")
        return _ACTIVATIONS[self.activation](maxima).masked_fill(num_windows == 0, 0)

    def embed(self, tokens: Tokens) -> Tensor:
        if self.padding != "right":
            return super().embed(tokens)
        lengths = (tokens.characters != 0).sum(1)  # (U,)
        longest = lengths[tokens.distinct].amax(1, keepdim=True).clamp(min=self.shortest)  # (B, 1)
        more = max(0, self.shortest - tokens.characters.shape[1])
        embedded = self.dropout(self.embedding(functional.pad(tokens.characters, (0, more))))  # (U, C, E)
        features = _ACTIVATIONS[self.activation](self.convolution(embedded.transpose(1, 2)))  # (U, F, C - W + 1)
        maxima = features.cummax(2).values.transpose(1, 2)  # of all windows up to each
        rows = tokens.distinct * maxima.shape[1] + longest - self.width  # (B, T)
        return functional.embedding(rows, maxima.flatten(0, 1)).masked_fill(~tokens.mask.unsqueeze(2), 0)

    def _windows(self, characters: Tensor, margin: int) -> tuple[Tensor, Tensor, Tensor]:
        """Every window with a character of its word: the word, (R,), and the rows of its padded characters, (R, W).

        The third tensor is how many of them each word has, (U, 1). Most words are much shorter than the longest. A
        convolution over all their padding would be most of the work.
        """
        lengths = (characters != 0).sum(1, keepdim=True)  # (U, 1)
        num_windows = (lengths + 2 * margin - self.width + 1).clamp(min=0).masked_fill(lengths == 0, 0)
        starts = torch.arange(characters.shape[1] + margin, device=characters.device)  # of a window's first character
        words, starts = (starts < num_windows).nonzero(as_tuple=True)  # (R,), (R,)
        first_rows = words * (characters.shape[1] + 2 * margin) + starts
        return words, first_rows.unsqueeze(1) + torch.arange(self.width, device=characters.device), num_windows
