"""What names a store of layers: the model that has computed them, and how they are stored.

# L LSTM layers, D features of a layer, F stored features of a token
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Literal

import torch

Storage = Literal["float16", "float32"]
TORCH_TYPES: dict[Storage, torch.dtype] = {"float16": torch.float16, "float32": torch.float32}

_FORMAT_VERSION = 3  # raise it when a change of the table makes old stores unreadable


@dataclasses.dataclass(frozen=True)
class LayerKey:
    """What layers depend on in addition to the tokens, and how they are stored."""

    fingerprint: str  # a hash of the biLM's weights and options, or of a transformer's files
    precision: str  # of the computation, such as "float32" or "bfloat16"; of a transformer, also pooling and layers
    num_layers: int  # L + 1, including the token layer
    output_size: int  # D
    storage: Storage = "float16"  # the type of the stored numbers
    has_token_layer: bool = True  # whether layer 0 is a biLM's, with two equal halves

    @property
    def name(self) -> str:
        """The name of the store."""
        values = dataclasses.astuple(self)
        # The stores of biLMs are older than the last value.
        content = json.dumps([_FORMAT_VERSION, values[:-1] if self.has_token_layer else values])
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    @property
    def omitted(self) -> int:
        """How many of a token's numbers are not stored: the halves of a biLM's token layer are equal."""
        return self.output_size // 2 if self.has_token_layer else 0

    @property
    def features(self) -> int:
        """The stored numbers F of a token."""
        return self.num_layers * self.output_size - self.omitted

    @property
    def token_bytes(self) -> int:
        """The size of a token's stored layers."""
        return self.features * TORCH_TYPES[self.storage].itemsize
