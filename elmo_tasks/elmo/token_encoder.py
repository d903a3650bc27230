"""The context-independent token layer: character embedding, convolutions, highway layers, projection.

`TokenEncoder` is the reference for `elmo/fast/words.py`, with frozen weights.

# N tokens, C characters per token, E features of a character, F filters, P features of a token
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.characters import NUM_CHARACTERS, PADDING_ID, tokens_to_ids
from elmo_tasks.elmo.options import BiLMOptions

TOKENS_AT_ONCE = 512  # bounds the memory of the convolutions: about 200 kB per token with the published filters


class Highway(nn.Module):
    """One highway layer (Srivastava et al. 2015) as in bilm-tf.

    carry = sigmoid(x W_c + b_c);  y = carry * relu(x W_t + b_t) + (1 - carry) * x
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.carry = nn.Linear(size, size)
        self.transform = nn.Linear(size, size)

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, F) -> (N, F)"""
        carry = torch.sigmoid(self.carry(inputs))
        return carry * functional.relu(self.transform(inputs)) + (1.0 - carry) * inputs


class TokenEncoder(nn.Module):
    """Maps tokens, given as character ids, to vectors that depend only on their spelling.

    Source: Peters et al. 2018, section 3.4, and bilm-tf's `_build_word_char_embeddings`: the activation follows the
    maximum over a token's positions, including those of padding characters; there is no projection if its two sizes
    would be equal. Extras may have other kinds, at the place "token_encoder".

    Class attributes:
        first_row: the first row of the table of characters that weights files contain.
    """

    first_row = 1

    def __init__(self, options: BiLMOptions) -> None:
        super().__init__()
        cnn = options.char_cnn
        self.embedding = nn.Embedding(NUM_CHARACTERS, cnn.embedding.dim, padding_idx=0)
        convolutions = nn.ModuleList(
            nn.Conv1d(cnn.embedding.dim, number, kernel_size=width) for width, number in cnn.filters
        )
        highways = nn.ModuleList(Highway(cnn.num_filters) for _ in range(cnn.n_highway))
        # A ModuleList has no type for its items.
        self.convolutions = cast("Sequence[nn.Conv1d]", convolutions)
        self.highways = cast("Sequence[Highway]", highways)
        self.projection: nn.Linear | None = None
        if options.has_token_projection:
            self.projection = nn.Linear(cnn.num_filters, options.lstm.projection_dim)
        self.activation = torch.tanh if cnn.activation == "tanh" else torch.relu
        self.max_characters = cnn.max_characters_per_token
        self._widest_filter = max(width for width, _ in cnn.filters)

    def forward(self, character_ids: Tensor) -> Tensor:
        """Encodes tokens. Without gradients, memory is bounded.

        Arguments:
            character_ids: (N, C) int64, as from `tokens_to_ids`.

        Returns:
            (N, P)
        """
        return torch.cat([self.encode(block) for block in character_ids.split(TOKENS_AT_ONCE)])

    def of_tokens(self, tokens: Sequence[str | bytes]) -> Tensor:
        """The vectors (N, P) of tokens, each a string or what `ids_to_bytes` gives."""
        return self(tokens_to_ids(tokens, self.max_characters).to(self.embedding.weight.device))

    def own_tensors(self) -> dict[str, Tensor]:
        """The tensors of another kind of token layer, by their names in weights files; those of bytes are lists."""
        return {}

    def encode(self, character_ids: Tensor, length: int | None = None) -> Tensor:
        """Encodes tokens at once, (N, C) -> (N, P); `length` is that of the longest one, if it is known."""
        vectors = self.filters(character_ids, PADDING_ID, length)
        return vectors if self.projection is None else self.projection(vectors)  # (N, P)

    def filters(self, character_ids: Tensor, padding: int, length: int | None = None) -> Tensor:
        """The filters' values after the highway layers, (N, C) -> (N, F); `padding` fills tokens up to their width."""
        # Windows that hold only padding all have the same values. One such window, after the longest token and for the
        # widest filter, is enough.
        if length is None:
            used = (character_ids != padding).any(dim=0).nonzero()
            length = int(used.max()) + 1 if len(used) else 0
        characters = self.embedding(character_ids[:, : length + self._widest_filter]).transpose(1, 2)  # (N, E, C)
        filters = torch.cat([convolution(characters).amax(dim=-1) for convolution in self.convolutions], dim=-1)
        vectors = self.activation(filters)  # (N, F)
        for highway in self.highways:
            vectors = highway(vectors)
        return vectors
