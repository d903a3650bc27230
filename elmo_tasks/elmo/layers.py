"""The layers of sentences, and what computes them.

# B batch, T tokens of the longest sentence, L LSTM layers, D features of a layer, both directions together
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
