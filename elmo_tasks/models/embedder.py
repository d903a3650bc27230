"""The vectors that a head reads: of words, of their characters, of a biLM and of a transformer, concatenated.

# B batch, T tokens of the longest sentence
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pydantic
import torch
from pydantic import Field
from torch import Tensor, nn

from elmo_tasks.config import Config
from elmo_tasks.elmo import ElmoConfig
from elmo_tasks.elmo.frozen_layers import FrozenLayers, FrozenLayersConfig
from elmo_tasks.modules.character_cnn import CharacterEncoder, CharacterEncoderConfig
from elmo_tasks.modules.word_embedding import WordEmbedding, WordEmbeddingConfig
from elmo_tasks.text.tokens import TensorRecord, Tokens
from elmo_tasks.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from elmo_tasks.modules.word_vectors import WordVectorFile


class EmbedderConfig(Config):
    """The vectors that a head reads: one or more kinds."""

    words: WordEmbeddingConfig | None = Field(None, description="vectors of words from a table")
    characters: CharacterEncoderConfig | None = Field(None, description="vectors of words from their characters")
    elmo: ElmoConfig | None = Field(None, description="mixes of a biLM's layers")
    transformer: FrozenLayersConfig | None = Field(None, description="a mix of a frozen transformer's layers")

    @pydantic.model_validator(mode="after")
    def _has_inputs(self) -> EmbedderConfig:
        if not (self.words or self.characters or self.transformer or (self.elmo and "input" in self.elmo.mixes)):
            raise ValueError(
                "nothing to read; expected at least one of words, characters, transformer and elmo with the mix 'input'"
            )
        return self

    def build(self, vocabulary: Vocabulary, pretrained: bool = True) -> Embedder:
        """Makes the embedder; for `pretrained` see `WordEmbeddingConfig.build` and `ElmoConfig.build`."""
        return Embedder(
            words=self.words.build(vocabulary, pretrained) if self.words else None,
            characters=self.characters.build(len(vocabulary.characters)) if self.characters else None,
            elmo=self.elmo.build(pretrained) if self.elmo else None,
            transformer=self.transformer.build() if self.transformer else None,
        )

    def word_vectors(self) -> WordVectorFile | None:
        """The file of vectors of words; None without one."""
        return self.words.file() if self.words else None


@dataclasses.dataclass(frozen=True)
class EmbeddedTokens(TensorRecord):
    """An embedder's vectors of tokens, zero in the padding."""

    inputs: Tensor  # (B, T, output_size), for the head's encoder
    outputs: Tensor | None  # (B, T, elmo_size), ELMo's mix "output"; None without such a mix

    def join(self, encoded: Tensor) -> Tensor:
        """Concatenates the mix "output", if there is one, to an encoder's output: (B, T, H) -> (B, T, H + elmo_size).

        Both have had their dropout before.
        """
        return encoded if self.outputs is None else torch.cat([encoded, self.outputs], dim=2)

    def scaled(self, scales: Tensor | None) -> EmbeddedTokens:
        """The vectors, each multiplied with the scale of its token, (B, T); None: as they are."""
        if scales is None:
            return self
        factors = scales.unsqueeze(2)  # (B, T, 1)
        return EmbeddedTokens(self.inputs * factors, None if self.outputs is None else self.outputs * factors)


class Embedder(nn.Module):
    """Vectors of words, of characters, ELMo's mix "input" and a transformer's, in this order; and ELMo's mix "output".

    Source: Peters et al. 2018, section 3.3. Vectors of characters are computed once for each distinct word of a batch.
    """

    def __init__(
        self,
        words: WordEmbedding | None = None,
        characters: CharacterEncoder | None = None,
        elmo: FrozenLayers | None = None,
        transformer: FrozenLayers | None = None,
    ) -> None:
        super().__init__()
        self.words = words
        self.characters = characters
        self.elmo = elmo
        self.transformer = transformer
        self.elmo_size = elmo.output_size if elmo and "output" in elmo.mixes else 0
        self.output_size = elmo.output_size if elmo and "input" in elmo.mixes else 0
        self.output_size += sum(part.output_size for part in (words, characters, transformer) if part)

    def joined_size(self, encoded_size: int) -> int:
        """The number of features after `EmbeddedTokens.join`, for an encoder's output of `encoded_size` features."""
        return encoded_size + self.elmo_size

    def forward(self, tokens: Tokens) -> EmbeddedTokens:
        """The vectors of a batch of sentences."""
        vectors: list[Tensor] = []
        if self.words is not None:
            vectors.append(self.words(tokens.words))
        if self.characters is not None:
            vectors.append(self.characters.embed(tokens))
        mixes: dict[str, Tensor] = self.elmo(tokens.texts) if self.elmo is not None else {}
        if "input" in mixes:
            vectors.append(mixes["input"])
        if self.transformer is not None:
            vectors.append(self.transformer(tokens.texts)["input"])
        return EmbeddedTokens(torch.cat(vectors, dim=2), mixes.get("output")).scaled(tokens.scales)

    def prepare(self, texts: Sequence[Sequence[str]]) -> None:
        """Computes once what every epoch would compute again; see `FrozenLayers.prepare`."""
        for part in (self.elmo, self.transformer):
            if part is not None:
                part.prepare(texts)

    def mix_weights(self) -> dict[str, dict[str, Any]]:
        """For logs: the layers of each of ELMo's mixes, their weights and gamma; empty without ELMo."""
        return self.elmo.mix_weights() if self.elmo else {}

    def transformer_weights(self) -> dict[str, Any]:
        """For logs: the same of the transformer's mix; empty without a transformer."""
        return self.transformer.mix_weights().get("input", {}) if self.transformer else {}
