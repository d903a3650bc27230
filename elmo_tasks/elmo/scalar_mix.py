"""The weighted sum of a biLM's layers that a task learns.

# B batch, L+1 layers (the token layer and L LSTM layers), K layers that are mixed, T tokens, D features
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

LayerNormalization = Literal["none", "batch", "token"]

_EPSILON = 1e-12


class ScalarMix(nn.Module):
    """ELMo = gamma sum_j softmax(w)_j h_j over the chosen layers; h_j can be normalized first.

    Source: Peters et al. 2018, equation 1; bilm-tf's `weight_layers`. One departure: padding is always zero.
    `load_state_dict` also takes the state dict of AllenNLP's `ScalarMix`, whose `scalar_parameters` are w.

    Arguments:
        num_layers: L+1, the layers of the input.
        layers: those that are mixed, 0 is the token layer; all by default.
        initial_weights: where each w_j starts, before the softmax; 0 by default.
        learned_weights: whether w is learned.
        gamma: where gamma starts.
        learned_gamma: whether gamma is learned.
        layer_normalization: "none"; "batch", as published: one mean and variance over all real tokens and features of
            a layer in the batch, which makes a sentence's result depend on its batch; or "token": over the features of
            each token. Neither has an affine part.

    Raises:
        ValueError: `layers` is empty, has a layer twice or one that does not exist, or `initial_weights` does not fit.
    """

    def __init__(
        self,
        num_layers: int,
        layers: Sequence[int] | None = None,
        initial_weights: Sequence[float] | None = None,
        learned_weights: bool = True,
        gamma: float = 1.0,
        learned_gamma: bool = True,
        layer_normalization: LayerNormalization = "none",
    ) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.layers = tuple(range(num_layers) if layers is None else layers)
        self.layer_normalization = layer_normalization
        distinct = set(self.layers)
        if not distinct or len(distinct) < len(self.layers) or not distinct <= set(range(num_layers)):
            raise ValueError(f"layers: got {self.layers}; expected different ones of 0 to {num_layers - 1}")
        start = [0.0] * len(self.layers) if initial_weights is None else [float(weight) for weight in initial_weights]
        if len(start) != len(self.layers):
            raise ValueError(
                f"initial_weights: got {len(start)} weights; expected {len(self.layers)}, one per mixed layer"
            )
        self.weights = nn.Parameter(torch.tensor(start), requires_grad=learned_weights)  # (K,)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=learned_gamma)

    def extra_repr(self) -> str:
        return f"layers {', '.join(map(str, self.layers))} of {self.num_layers}"

    @property
    def scalar_parameters(self) -> list[Tensor]:
        """The weights w as AllenNLP has them: K tensors (1,)."""
        return list(self.weights.split(1))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *arguments: Any) -> None:
        """What `load_state_dict` calls: it also takes weights under AllenNLP's names."""
        names = [f"{prefix}scalar_parameters.{number}" for number in range(len(self.layers))]
        if all(name in state_dict for name in names):
            state_dict[f"{prefix}weights"] = torch.cat([state_dict.pop(name).reshape(-1) for name in names])
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def normalized_weights(self) -> Tensor:
        """The weight of each mixed layer, (K,): positive, with sum 1, in the order of `layers`."""
        return torch.softmax(self.weights, dim=0)

    def forward(self, layers: Tensor, mask: Tensor) -> Tensor:
        """Mixes the layers.

        Arguments:
            layers: (B, L+1, T, D), of any floating type.
            mask: (B, T) bool, True where a token is real.

        Returns:
            (B, T, D), in the type of the weights.
        """
        if layers.shape[1] != self.num_layers:
            raise ValueError(f"layers: got {layers.shape[1]} of them; expected {self.num_layers}")
        chosen = layers if self.layers == tuple(range(self.num_layers)) else layers[:, self.layers]  # (B, K, T, D)
        chosen = chosen.to(self.weights.dtype)
        if self.layer_normalization == "token":
            chosen = functional.layer_norm(chosen, chosen.shape[-1:], eps=_EPSILON)
        elif self.layer_normalization == "batch":
            chosen = _normalize_over_batch(chosen, mask)
        mixed = torch.einsum("k,bktd->btd", self.gamma * self.normalized_weights(), chosen)
        return mixed.masked_fill(~mask[..., None], 0.0)


def _normalize_over_batch(layers: Tensor, mask: Tensor) -> Tensor:
    real = mask[:, None, :, None]  # (B, 1, T, 1)
    count = (mask.sum() * layers.shape[-1]).clamp(min=1)
    values = layers.to(torch.promote_types(layers.dtype, torch.float32))  # half precision overflows in the sums
    mean = values.masked_fill(~real, 0.0).sum(dim=(0, 2, 3), keepdim=True) / count  # (1, K, 1, 1)
    centred = (values - mean).masked_fill(~real, 0.0)
    variance = centred.square().sum(dim=(0, 2, 3), keepdim=True) / count
    return (centred / torch.sqrt(variance + _EPSILON)).to(layers.dtype)
