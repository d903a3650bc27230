"""All sentences of documents through embedder and encoder, in memory that no long sentence can blow up.

# S sentences, T tokens of the longest, N tokens of all sentences, D features of the input, H features of the output
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_tasks.batch import TensorRecord, Tokens
from elmo_tasks.dropout import Dropout
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.embedder import Embedder
from elmo_tasks.modules.encoders import Encoder

_GROUP_TOKENS = 4096  # most tokens of a group, padding included; a longer sentence is a group of its own
_LEAST_SHARE = 0.6  # of the group's longest sentence that its shortest has


@dataclasses.dataclass(frozen=True)
class TokenVectors(TensorRecord):
    """The vectors of tokens, sentence by sentence, without padding."""

    inputs: Tensor  # (N, D), the embedder's
    encoded: Tensor  # (N, H), the encoder's and, where there is one, ELMo's second mix


class GroupedSentenceEncoder(nn.Module):
    """Embeds and encodes each sentence for itself, in groups of like length.

    Sentences of a document differ much in length. In one padded batch most would be padding, and with a very long
    sentence among many short ones there would be no end to the memory.

    Arguments:
        encoder: of inputs of the embedder's size D.
        elmo_size: features of ELMo's second mix, which are concatenated to the encoder's output.
        input_dropout: probability of dropping a feature of a token's input.
        output_dropout: probability of variational dropout on the encoder's output.
    """

    def __init__(self, encoder: Encoder, elmo_size: int, input_dropout: float, output_dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.input_dropout = Dropout(input_dropout)
        self.output_dropout = VariationalDropout(output_dropout)
        self.output_size = encoder.output_size + elmo_size

    def forward(self, embedder: Embedder, tokens: Tokens, rows: Sequence[int]) -> TokenVectors:
        """Vectors of the tokens of the chosen sentences, in the order of `rows`."""
        lengths = np.array([len(tokens.texts[row]) for row in rows], dtype=np.int64)
        first_places = np.cumsum(lengths) - lengths
        inputs, encoded, places = [], [], []
        for group in groups_of_like_length(lengths):
            part = select_sentences(tokens, [rows[member] for member in group])
            vectors = self._encode(embedder, part)
            is_token = np.arange(lengths[group].max()) < lengths[group, None]  # (S, T) of the group
            flat = torch.from_numpy(np.flatnonzero(is_token)).to(part.words.device)
            inputs.append(vectors.inputs.flatten(0, 1).index_select(0, flat))
            encoded.append(vectors.encoded.flatten(0, 1).index_select(0, flat))
            places.append((first_places[group, None] + np.arange(is_token.shape[1]))[is_token])
        order = torch.from_numpy(np.concatenate(places)).to(inputs[0].device)  # (N,)
        return TokenVectors(inputs=_placed(inputs, order), encoded=_placed(encoded, order))

    def _encode(self, embedder: Embedder, tokens: Tokens) -> TokenVectors:
        embedded = embedder(tokens)
        inputs = self.input_dropout(embedded.inputs)  # (S, T, D)
        encoded = self.output_dropout(self.encoder(inputs, tokens.mask))  # (S, T, H)
        if embedded.outputs is not None:  # with a dropout of its own
            encoded = torch.cat([encoded, embedded.outputs], dim=2)
        return TokenVectors(inputs=inputs, encoded=encoded)


def groups_of_like_length(lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The numbers of the sentences of each group, the longest sentences first."""
    order = np.argsort(-lengths, kind="stable")
    groups = []
    first = 0
    for place, number in enumerate(order.tolist()):
        longest = lengths[order[first]]
        is_full = (place + 1 - first) * longest > _GROUP_TOKENS
        if place > first and (is_full or lengths[number] < _LEAST_SHARE * longest):
            groups.append(order[first:place])
            first = place
    return [*groups, order[first:]]


def select_sentences(tokens: Tokens, rows: Sequence[int]) -> Tokens:
    """Some of the sentences, padded to the longest of them, with the characters of their own words alone."""
    texts = [tokens.texts[row] for row in rows]
    longest = max(map(len, texts))
    chosen = torch.tensor(rows, device=tokens.words.device)
    distinct = tokens.distinct[chosen, :longest]  # (S, T)
    with_padding = torch.cat([distinct.new_zeros(1), distinct.flatten()])  # row 0 of the characters is padding
    used, numbers = torch.unique(with_padding, return_inverse=True)
    return Tokens(
        texts=texts,
        mask=tokens.mask[chosen, :longest],
        words=tokens.words[chosen, :longest],
        distinct=numbers[1:].view_as(distinct),
        characters=tokens.characters[used],
    )


def _placed(parts: list[Tensor], order: Tensor) -> Tensor:
    """The rows of all parts, row n at place `order[n]`."""
    joined = torch.cat(parts)
    return torch.zeros_like(joined).index_copy(0, order, joined)
