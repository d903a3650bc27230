"""A mix of a biLM's layers whose weights a gate computes for each token.

# B batch, K layers that are mixed, T tokens, D features
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from elmo_tasks.elmo.scalar_mix import LayerNormalization, MixConfig, ScalarMix


class GatedMixConfig(MixConfig):
    """Weights of the layers for each token, which a small network, the gate, computes from its layers.

    At first they are equal. The gate is `mixes.*gate`; the bias of its last layer is `mixes.*weights`, as in the scalar
    mix. `metrics.jsonl` has the mean weights over the tokens of the validation data.
    """

    type: Literal["gated"] = "gated"
    hidden_size: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Units of the gate's hidden layer, with tanh; null for a linear gate."
    )

    def build(
        self,
        input_size: int,
        num_layers: int,
        layers: Sequence[int],
        gamma: float,
        learned_gamma: bool,
        layer_normalization: LayerNormalization,
    ) -> GatedMix:
        weighing = (gamma, learned_gamma, layer_normalization)
        return GatedMix(input_size, self.hidden_size, num_layers, layers, *weighing)


class GatedMix(ScalarMix):
    """gamma sum_j s_j h_j, where s = softmax(gate([h_1; ...; h_K]) + w) for each token.

    The gate reads the mixed layers, concatenated, after their normalization if there is one. Its last layer begins at
    zero, which is the scalar mix with the weights w. The state of a scalar mix fits, except for the gate.

    Arguments:
        input_size: D.
        hidden_size: units of the gate's hidden layer, with tanh; None for a linear gate.
        num_layers, layers, gamma, learned_gamma, layer_normalization: see `ScalarMix`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | None,
        num_layers: int,
        layers: Sequence[int] | None = None,
        gamma: float = 1.0,
        learned_gamma: bool = True,
        layer_normalization: LayerNormalization = "none",
    ) -> None:
        super().__init__(num_layers, layers, None, True, gamma, learned_gamma, layer_normalization)
        count, size = len(self.layers), len(self.layers) * input_size
        last = nn.Linear(hidden_size or size, count, bias=False)  # its bias is w
        nn.init.zeros_(last.weight)
        self.gate = nn.Sequential(*([nn.Linear(size, hidden_size), nn.Tanh()] if hidden_size else []), last)
        self._sums: Tensor  # of s in evaluation; not a part of the state
        self.register_buffer("_sums", torch.zeros(count), persistent=False)  # (K,)

    def mean_weights(self) -> Tensor | None:
        """The mean over the tokens that were read in evaluation since the last training step; None without any."""
        return self._sums / self._sums.sum() if self._sums.any() else None

    def _weighted_sum(self, chosen: Tensor, mask: Tensor) -> Tensor:
        joined = chosen.transpose(1, 2).flatten(2)  # (B, T, K D)
        shares = torch.softmax(self.gate(joined) + self.weights, dim=-1)  # (B, T, K)
        if self.training:
            self._sums.zero_()
        else:
            self._sums += shares.detach()[mask].sum(dim=0)
        return torch.einsum("btk,bktd->btd", self.gamma * shares, chosen)
