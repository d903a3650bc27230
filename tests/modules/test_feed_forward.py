from __future__ import annotations

from typing import Any

import numpy as np
import pydantic
import pytest
import torch

from elmo_tasks.modules.feed_forward import FeedForward, FeedForwardConfig


def build(**settings: Any) -> FeedForward:
    torch.manual_seed(6)
    module = FeedForwardConfig(hidden_sizes=(5, 3), **settings).build(4)
    for layer in module.layers:
        torch.nn.init.normal_(layer.get_parameter("bias"))
    return module.eval()


@pytest.mark.parametrize("activation", ["relu", "tanh", "maxout"])
def test_each_layer_is_linear_with_its_activation(activation: str) -> None:
    module = build(activation=activation, pieces=2)
    inputs = torch.randn(2, 7, 4)
    expected = inputs.numpy()
    for layer in module.layers:
        weight, bias = (parameter.detach().numpy() for parameter in layer.parameters())
        values = expected @ weight.T + bias
        if activation == "relu":
            expected = np.maximum(values, 0)
        elif activation == "tanh":
            expected = np.tanh(values)
        else:  # pairs of neighbours
            expected = np.maximum(values[..., 0::2], values[..., 1::2])
    assert module.output_size == 3
    np.testing.assert_allclose(module(inputs).detach().numpy(), expected, atol=1e-6)


def test_dropout_is_on_every_layers_output() -> None:
    module = build(dropout=0.5).train()
    plain = FeedForward(1, (1000,), dropout=0.25)
    torch.nn.init.zeros_(plain.get_parameter("layers.0.weight"))
    torch.nn.init.ones_(plain.get_parameter("layers.0.bias"))
    outputs = plain(torch.ones(1, 1))
    assert outputs.unique().tolist() == [0, pytest.approx(4 / 3)]
    assert outputs.mean().item() == pytest.approx(1, abs=0.1)
    inputs = torch.randn(50, 4)
    assert not torch.equal(module(inputs), module(inputs))
    module.eval()
    assert torch.equal(module(inputs), module(inputs))


def test_weights_start_after_glorot_and_biases_at_zero() -> None:
    (layer,) = FeedForwardConfig(hidden_sizes=(50,)).build(30).layers
    bound = (6 / (30 + 50)) ** 0.5
    assert 0.95 * bound < layer.get_parameter("weight").abs().max() <= bound
    assert not layer.get_parameter("bias").any()


def test_config() -> None:
    config = FeedForwardConfig.model_validate_json('{"hidden_sizes": [6], "activation": "maxout", "pieces": 3}')
    assert config.build(2).layers[0].weight.shape == (18, 2)
    assert FeedForwardConfig(hidden_sizes=(6,), pieces=3).build(2).layers[0].weight.shape == (6, 2)
    for wrong in ({"hidden_sizes": ()}, {"hidden_sizes": (0,)}, {"pieces": 1}, {"dropout": 1.0}, {"activation": "elu"}):
        with pytest.raises(pydantic.ValidationError, match=next(iter(wrong))):
            FeedForwardConfig.model_validate({"hidden_sizes": (6,), **wrong})
