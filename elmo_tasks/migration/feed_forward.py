"""AllenNLP's feed-forward layers and maxout layers.

# D features of the first layer's input, H features of a layer's output
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.migration.contents import Params, Weights


@dataclasses.dataclass(frozen=True)
class Layer:
    """A linear layer and what follows it."""

    weight: Tensor  # (H, D), with maxout (pieces * H, D)
    bias: Tensor  # (H,), with maxout (pieces * H,)
    activation: str  # AllenNLP's name, or maxout
    dropout: float
    pieces: int = 1  # linear functions per output of maxout


def read_layers(params: Params, weights: Weights) -> list[Layer]:
    """The layers of a `FeedForward` or, if it has `pool_sizes`, of a `Maxout`, the lowest first.

    Raises:
        MigrationError: the tensors do not fit the config.
    """
    count = params.number("num_layers")
    pieces = _each(params, "pool_sizes", count) if "pool_sizes" in params else [1] * count
    sizes = _each(params, "output_dims" if "pool_sizes" in params else "hidden_dims", count)
    activations = ["maxout"] * count if "pool_sizes" in params else _each(params, "activations", count)
    dropouts = _each(params, "dropout", count, 0.0)
    input_size = params.number("input_dim")
    layers = []
    for number, (size, piece, activation, dropout) in enumerate(zip(sizes, pieces, activations, dropouts, strict=True)):
        layer = weights.part(f"_linear_layers.{number}.")
        weight, bias = layer.take("weight", piece * size, input_size), layer.take("bias", piece * size)
        name = activation.get("type") if isinstance(activation, dict) else activation
        layers.append(Layer(weight, bias, str(name), dropout, piece))
        input_size = size
    return layers


def _each(params: Params, key: str, count: int, *default: Any) -> list[Any]:
    """A value for each layer; a single one holds for all."""
    value = params.get(key, *default)
    values = value if isinstance(value, list) else [value] * count
    if len(values) != count:
        raise MigrationError(f"config.json: {params.path(key)} has {len(values)} values for {count} layers")
    return values


def with_columns(layers: Sequence[Layer], columns: Tensor) -> list[Layer]:
    """The layers for inputs in another order: feature n of them is feature `columns[n]` of AllenNLP's."""
    first, *rest = layers
    return [dataclasses.replace(first, weight=first.weight[:, columns]), *rest]


def feed_forward(layers: Sequence[Layer], path: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config of our `FeedForward` with these layers, and its tensors.

    Dropout is the same for all layers here: that of the layer that has most.

    Arguments:
        path: where the layers are, for messages.

    Raises:
        MigrationError: our layers cannot be like these: their activation is another, or not the same for all.
    """
    kinds = {(layer.activation, layer.pieces) for layer in layers}
    activation, pieces = next(iter(kinds))
    if len(kinds) > 1 or activation not in ("relu", "tanh", "maxout"):
        found = ", ".join(sorted({layer.activation for layer in layers}))
        raise MigrationError(f"config.json: {path}: {found}; expected relu, tanh or maxout, the same for all layers")
    config: dict[str, Any] = {
        "hidden_sizes": [len(layer.bias) // pieces for layer in layers],
        "activation": activation,
        "dropout": max(layer.dropout for layer in layers),
    }
    tensors: dict[str, Tensor] = {}
    for number, layer in enumerate(layers):
        tensors |= {f"layers.{number}.weight": layer.weight, f"layers.{number}.bias": layer.bias}
    return config | ({"pieces": pieces} if activation == "maxout" else {}), tensors
