"""AllenNLP's feed-forward and maxout layers: a setting for each layer or one for all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.migration.feed_forward import feed_forward, read_layers, with_columns
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.weights import Weights


def tensors(*shapes: tuple[int, int]) -> dict[str, Tensor]:
    named = {}
    for number, (outputs, inputs) in enumerate(shapes):
        named[f"_linear_layers.{number}.weight"] = torch.arange(float(outputs * inputs)).view(outputs, inputs)
        named[f"_linear_layers.{number}.bias"] = torch.arange(float(outputs))
    return named


def test_a_setting_for_each_layer() -> None:
    given = tensors((4, 3), (2, 4))
    params = {
        "input_dim": 3,
        "num_layers": 2,
        "hidden_dims": [4, 2],
        "activations": ["tanh", {"type": "tanh"}],
        "dropout": [0.1, 0.3],
    }
    weights = Weights(dict(given))
    one, other = read_layers(Params(params), weights)
    assert weights.unused() == []
    assert [(each.activation, each.dropout, each.pieces) for each in (one, other)] == [
        ("tanh", 0.1, 1),
        ("tanh", 0.3, 1),
    ]
    config, converted = feed_forward([one, other], "here")
    assert config == {"hidden_sizes": [4, 2], "activation": "tanh", "dropout": 0.3}
    assert {name: tensor.tolist() for name, tensor in converted.items()} == {
        name.removeprefix("_linear_"): tensor.tolist() for name, tensor in given.items()
    }


def test_one_setting_for_all_layers_and_no_dropout() -> None:
    params = {"input_dim": 3, "num_layers": 2, "hidden_dims": 3, "activations": "relu"}
    config, _ = feed_forward(read_layers(Params(params), Weights(tensors((3, 3), (3, 3)))), "here")
    assert config == {"hidden_sizes": [3, 3], "activation": "relu", "dropout": 0.0}


def test_maxout() -> None:
    params = {"input_dim": 3, "num_layers": 2, "output_dims": [4, 1], "pool_sizes": 2, "dropout": 0.2}
    layers = read_layers(Params(params), Weights(tensors((8, 3), (2, 4))))
    assert [each.pieces for each in layers] == [2, 2]
    assert feed_forward(layers, "here")[0] == {
        "hidden_sizes": [4, 1],
        "activation": "maxout",
        "dropout": 0.2,
        "pieces": 2,
    }


def test_only_the_first_layer_reads_inputs_in_another_order() -> None:
    params = {"input_dim": 2, "num_layers": 2, "hidden_dims": 2, "activations": "relu"}
    one, other = with_columns(read_layers(Params(params), Weights(tensors((2, 2), (2, 2)))), torch.tensor([1, 0]))
    assert one.weight.tolist() == [[1, 0], [3, 2]]
    assert other.weight.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_dims": [4]}, r"config\.json: hidden_dims has 1 values for 2 layers"),
        ({"activations": ["relu"] * 3}, "activations has 3 values for 2 layers"),
        ({"activations": ["relu", "tanh"]}, "here: relu, tanh; wanted relu, tanh or maxout, the same for all layers"),
        ({"activations": "elu"}, "here: elu; wanted relu, tanh or maxout"),
        ({"input_dim": 5}, r"_linear_layers\.0\.weight' is 4 x 3; by its config it should be 4 x 5"),
        ({"hidden_dims": [4, 3]}, r"_linear_layers\.1\.weight' is 2 x 4; by its config it should be 3 x 4"),
        (
            {"output_dims": [2, 1], "pool_sizes": [2, 2], "hidden_dims": None, "activations": None, "num_layers": 3},
            "pool_sizes has 2 values for 3 layers",
        ),
    ],
)
def test_layers_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    params = {"input_dim": 3, "num_layers": 2, "hidden_dims": [4, 2], "activations": "relu", **change}
    with pytest.raises(MigrationError, match=message):
        feed_forward(read_layers(Params(params), Weights(tensors((4, 3), (2, 4)))), "here")
