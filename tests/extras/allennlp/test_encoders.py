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


@pytest.mark.parametrize(
    ("num_layers", "input_bias", "cell", "both"),
    [
        (1, True, "", False),
        (3, False, "cell.", False),
        (3, True, "cell.", False),
        (2, True, "", True),
        (2, False, "", True),
    ],
)
def test_augmented_layers(num_layers: int, input_bias: bool, cell: str, both: bool) -> None:
    """In alternating directions, or with both directions in each layer."""
    directions = ("forward_", "backward_") if both else ("",)
    names = [[f"_module.{direction}layer_{layer}.{cell}" for direction in directions] for layer in range(num_layers)]
    tensors: dict[str, Tensor] = {}
    for layer, prefixes in enumerate(names):
        for prefix in prefixes:
            tensors |= augmented_tensors(prefix, 5 if layer == 0 else len(directions) * SIZE, input_bias)
    kind = "stacked_bidirectional_lstm" if both else "alternating_lstm"
    ignored = {"use_highway": True} if both else {"dropout": 0.4, "layer_dropout_probability": 0.3}
    ignored |= {} if both else {"use_input_projection_bias": input_bias}
    dropout = {"recurrent_dropout_probability": 0.1} if num_layers > 1 else {}
    inputs = torch.randn(3, 6, 5)
    config, actual = outputs({"type": kind, "num_layers": num_layers, **ignored, **dropout}, tensors, inputs)
    settings = {"hidden_size": SIZE, "num_layers": num_layers, "dropout": 0.1 if dropout else 0.0}
    settings |= {"highway_bias": True} if input_bias else {}
    assert config == {"type": "stacked_highway_bilstm" if both else kind, **settings}
    for row, length in enumerate(LENGTHS):
        values = inputs[row, :length]
        for layer, prefixes in enumerate(names):
            is_backward = (False, True) if both else (layer % 2 == 1,)
            read = [
                augmented_lstm(tensors, prefix, values.flip(0)).flip(0)
                if back
                else augmented_lstm(tensors, prefix, values)
                for prefix, back in zip(prefixes, is_backward, strict=True)
            ]
            values = torch.cat(read, dim=1)
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
        ({"type": "pass_through"}, "type: pass_through only reads one embedder"),
    ):
        with pytest.raises(MigrationError, match=message):
            convert_encoder(Params(params), weights, COLUMNS)
