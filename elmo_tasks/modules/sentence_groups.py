"""Embeds and encodes all sentences of documents, in bounded memory even with very long sentences.

# S sentences, T tokens of the longest, N tokens of all sentences, D features of the input, H features of the output
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.modules.dropout import Dropout, VariationalDropout
from elmo_tasks.modules.encoders import Encoder
from elmo_tasks.text.tokens import TensorRecord, Tokens, batches_of_like_lengths

_GROUP_TOKENS = 4096  # most tokens of a group, padding included; a longer sentence is a separate group
_LEAST_SHARE = 0.6  # the length of a group's shortest sentence is at least this share of the longest one's


@dataclasses.dataclass(frozen=True)
class TokenVectors(TensorRecord):
    """The vectors of tokens, sentence by sentence, without padding."""

    inputs: Tensor  # (N, D), the embedder's
    encoded: Tensor  # (N, H), the encoder's and, where there is one, ELMo's second mix


class GroupedSentenceEncoder(nn.Module):
    """Embeds and encodes each sentence by itself, in groups of like length.

    The sentences of a document differ much in length. One padded batch would be mostly padding, and one very long
    sentence would need very much memory. So the tokens of all sentences come in one row and are padded by group.

    Arguments:
        embedder: what the tokens are read with.
        encoder: of inputs of the embedder's size D.
        input_dropout: probability of dropping a feature of a token's input.
        output_dropout: probability of variational dropout on the encoder's output.
    """

    def __init__(self, embedder: Embedder, encoder: Encoder, input_dropout: float, output_dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.input_dropout = Dropout(input_dropout)
        self.output_dropout = VariationalDropout(output_dropout)
        self.output_size = embedder.joined_size(encoder.output_size)

    def forward(
        self, embedder: Embedder, tokens: Tokens, starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> TokenVectors:
        """Encodes sentences.

        Arguments:
            tokens: one row with the tokens of all sentences; it may hold others.
            starts: (S,) where in the row each sentence begins.
            lengths: (S,) its tokens, at least 1.

        Returns:
            the vectors of the sentences' tokens, in the order of the sentences.
        """
        new_starts = np.cumsum(lengths) - lengths  # among the tokens of these sentences
        inputs, encoded, positions = [], [], []
        for rows in batches_of_like_lengths(lengths.tolist(), max_padded=_GROUP_TOKENS, least_share=_LEAST_SHARE):
            group = np.array(rows)
            sentences = padded_sentences(tokens, starts[group], lengths[group])
            embedded = embedder(sentences)
            read = self.input_dropout(embedded.inputs)  # (S, T, D) of the group
            outputs = embedded.join(self.output_dropout(self.encoder(read, sentences.mask)))  # (S, T, H)
            offsets = np.arange(lengths[group].max())  # (T,)
            is_token = offsets < lengths[group, None]  # (S, T) of the group
            flat = torch.from_numpy(np.flatnonzero(is_token)).to(read.device)
            inputs.append(read.flatten(0, 1).index_select(0, flat))
            encoded.append(outputs.flatten(0, 1).index_select(0, flat))
            positions.append((new_starts[group, None] + offsets)[is_token])
        order = torch.from_numpy(np.concatenate(positions)).to(inputs[0].device)  # (N,)
        return TokenVectors(inputs=_placed(inputs, order), encoded=_placed(encoded, order))


def padded_sentences(tokens: Tokens, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tokens:
    """Some of a row's sentences, padded to the longest of them, with the characters of only their words."""
    device = tokens.words.device
    offsets = torch.arange(int(lengths.max()), device=device)  # (T,)
    mask = offsets < torch.from_numpy(lengths).to(device).unsqueeze(1)  # (S, T)
    positions = (torch.from_numpy(starts).to(device).unsqueeze(1) + offsets).masked_fill(~mask, 0)  # (S, T)
    distinct = tokens.distinct[0, positions].masked_fill(~mask, 0)  # (S, T)
    with_padding = torch.cat([distinct.new_zeros(1), distinct.flatten()])  # row 0 of the characters is padding
    used, numbers = torch.unique(with_padding, return_inverse=True)
    row = tokens.texts[0]
    return Tokens(
        texts=[row[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)],
        mask=mask,
        words=tokens.words[0, positions].masked_fill(~mask, 0),
        distinct=numbers[1:].view_as(distinct),
        characters=tokens.characters[used],
        scales=None if tokens.scales is None else tokens.scales[0, positions],
    )


def _placed(parts: list[Tensor], order: Tensor) -> Tensor:
    """The rows of all parts, row n at position `order[n]`."""
    joined = torch.cat(parts)
    return torch.zeros_like(joined).index_copy(0, order, joined)
