"""The layers of sentences, and what computes them.

# B batch, T tokens of the longest sentence, L LSTM layers, P features of one direction, D = 2P features of a layer
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from elmo_tasks.text.tokens import TensorRecord


@dataclasses.dataclass(frozen=True)
class LayerOutput(TensorRecord):
    """All layers of a batch: the token layer (doubled to D features), then LSTM layers 1 to L; zero at padding."""

    layers: Tensor  # (B, L+1, T, D)
    mask: Tensor  # (B, T) bool, True where a token is real


class LayerSource(Protocol):
    """What computes layers: a biLM in any of its forms."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput: ...


@dataclasses.dataclass(frozen=True)
class LayerChunk:
    """All layers of some tokens of one sentence, in one direction."""

    layers: Tensor  # (L+1, tokens, P)
    tokens: slice  # the tokens' positions in the sentence
    features: slice  # the direction's half of the D features
