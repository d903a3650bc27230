"""AllenNLP's encoders: torch's own with the same weights, and AllenNLP's `AugmentedLstm` written down step by step."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import Params, Weights
from elmo_tasks.extras.allennlp.heads.head import convert_encoder
from elmo_tasks.modules.encoders import EncoderConfig

COLUMNS = torch.tensor([3, 0, 4, 1, 2])  # of our inputs, AllenNLP's
SIZE = 3
LENGTHS = (4, 1, 6)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(2)


def outputs(params: dict[str, Any], tensors: dict[str, Tensor], inputs: Tensor) -> tuple[dict[str, Any], Tensor]:
    """Our encoder's config, and what it makes of AllenNLP's inputs (B, T, 5), whose features it reads reordered."""
    weights = Weights(dict(tensors))
    read = Params({"input_size": 5, "hidden_size": SIZE, **params})
    config, converted = convert_encoder(read, weights, COLUMNS)
    assert not weights.names()
    assert not read.unread()
    encoder = EncoderConfig.model_validate_json(json.dumps(config)).build(5)
    encoder.load_state_dict(converted)
    mask = torch.arange(inputs.shape[1]) < torch.tensor(LENGTHS).unsqueeze(1)
    return config, encoder.eval()(inputs[:, :, COLUMNS], mask)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(("name", "kind"), [("lstm", nn.LSTM), ("gru", nn.GRU)])
def test_torch_s_layers(name: str, kind: type[nn.RNNBase], num_layers: int, bidirectional: bool) -> None:
    layers: Any = kind(5, SIZE, num_layers, batch_first=True, bidirectional=bidirectional)  # type: ignore[arg-type]
    params = {"type": name, "batch_first": True, "bias": True, "stateful": False}
    params |= {"num_layers": 2} if num_layers == 2 else {}
    params |= {"bidirectional": True, "dropout": 0.2} if bidirectional else {}
    inputs = torch.randn(3, 6, 5)
    tensors = {f"_module.{key}": tensor for key, tensor in layers.state_dict().items()}
    config, actual = outputs(params, tensors, inputs)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(actual[row, :length], layers(inputs[row : row + 1, :length])[0][0])
    dropout = {"dropout": 0.2 if bidirectional else 0.0} if num_layers == 2 else {}  # is only between layers
    sizes = {"hidden_sizes": [SIZE] * num_layers, "bidirectional": bidirectional}
    assert config == {"type": f"stacked_bi{name}", **sizes, **dropout}


def augmented_lstm(tensors: dict[str, Tensor], prefix: str, sentence: Tensor) -> Tensor:
    """AllenNLP's `AugmentedLstm` in one direction, (T, D) -> (T, H)."""
    state = memory = torch.zeros(SIZE)
    read = []
    for token in sentence:
        projected = tensors[f"{prefix}input_linearity.weight"] @ token
        projected = projected + tensors.get(f"{prefix}input_linearity.bias", 0.0)
        recurrent = tensors[f"{prefix}state_linearity.weight"] @ state + tensors[f"{prefix}state_linearity.bias"]
        enter, forget, candidate, leave, highway = (projected[: len(recurrent)] + recurrent).split(SIZE)
        memory = enter.sigmoid() * candidate.tanh() + forget.sigmoid() * memory
        gate = highway.sigmoid()
        state = gate * leave.sigmoid() * memory.tanh() + (1 - gate) * projected[5 * SIZE :]
        read.append(state)
    return torch.stack(read)


def augmented_tensors(prefix: str, input_size: int, input_bias: bool) -> dict[str, Tensor]:
    tensors = {
        f"{prefix}input_linearity.weight": torch.randn(6 * SIZE, input_size),
        f"{prefix}state_linearity.weight": torch.randn(5 * SIZE, SIZE),
        f"{prefix}state_linearity.bias": torch.randn(5 * SIZE),
    }
    if input_bias:
        tensors[f"{prefix}input_linearity.bias"] = torch.randn(6 * SIZE)
    return tensors


@pytest.mark.parametrize("cell", ["", "cell."])
@pytest.mark.parametrize("input_bias", [True, False])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_alternating_layers(num_layers: int, input_bias: bool, cell: str) -> None:
    tensors: dict[str, Tensor] = {}
    for layer in range(num_layers):
        prefix = f"_module.layer_{layer}.{cell}"
        tensors |= augmented_tensors(prefix, 5 if layer == 0 else SIZE, input_bias)
    ignored = {"dropout": 0.4, "layer_dropout_probability": 0.3, "use_input_projection_bias": input_bias}
    params = {"type": "alternating_lstm", "num_layers": num_layers, **ignored}
    params |= {"recurrent_dropout_probability": 0.1} if num_layers > 1 else {}
    inputs = torch.randn(3, 6, 5)
    config, actual = outputs(params, tensors, inputs)
    settings = {"hidden_size": SIZE, "num_layers": num_layers, "dropout": 0.1 if num_layers > 1 else 0.0}
    assert config == {"type": "alternating_lstm", **settings, **({"highway_bias": True} if input_bias else {})}
    for row, length in enumerate(LENGTHS):
        values = inputs[row, :length]
        for layer in range(num_layers):
            values = values if layer % 2 == 0 else values.flip(0)
            values = augmented_lstm(tensors, f"_module.layer_{layer}.{cell}", values)
            values = values if layer % 2 == 0 else values.flip(0)
        torch.testing.assert_close(actual[row, :length], values)


@pytest.mark.parametrize("input_bias", [True, False])
def test_stacked_bidirectional_layers(input_bias: bool) -> None:
    tensors: dict[str, Tensor] = {}
    for layer in range(2):
        for direction in ("forward", "backward"):
            size = 5 if layer == 0 else 2 * SIZE
            prefix = f"_module.{direction}_layer_{layer}."
            tensors |= augmented_tensors(prefix, size, input_bias)
    params = {"type": "stacked_bidirectional_lstm", "num_layers": 2, "use_highway": True}
    inputs = torch.randn(3, 6, 5)
    _, actual = outputs({**params, "recurrent_dropout_probability": 0.5}, tensors, inputs)
    for row, length in enumerate(LENGTHS):
        values = inputs[row, :length]
        for layer in range(2):
            forward = augmented_lstm(tensors, f"_module.forward_layer_{layer}.", values)
            backward = augmented_lstm(tensors, f"_module.backward_layer_{layer}.", values.flip(0)).flip(0)
            values = torch.cat([forward, backward], dim=1)
        torch.testing.assert_close(actual[row, :length], values)


def test_others_are_refused() -> None:
    weights = Weights({"_module.weight_ih_l0": torch.zeros(12, 4)})
    for params, message in (
        ({"type": "multi_head_self_attention"}, "only lstm or gru or alternating_lstm"),
        ({}, "type is None; only"),
        ({"type": "lstm", "stateful": True}, "stateful is True"),
        ({"type": "alternating_lstm", "hidden_size": 3, "num_layers": 1, "use_highway": False}, "use_highway is False"),
        ({"type": "lstm", "hidden_size": 3}, "is 12 x 4; by its config it should be any x 5"),
        ({"type": "gru", "bias": False}, "bias is False; only True can"),
        ({"type": "lstm", "proj_size": 2}, "proj_size is 2; only 0 can"),
    ):
        with pytest.raises(MigrationError, match=message):
            convert_encoder(Params(params), weights, COLUMNS)
