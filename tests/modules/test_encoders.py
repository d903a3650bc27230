"""All encoders keep one contract; what is special about the stacked ones; feed-forward layers and dropout."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.encoders import (
    Encoder,
    EncoderConfig,
    StackedBiGruConfig,
    StackedBiLstmConfig,
    initialize_gates,
)
from elmo_tasks.modules.feed_forward import FeedForward, FeedForwardConfig
from tests.modules.helpers import gradients, mask_of


@pytest.fixture(
    params=[
        {"type": "stacked_bilstm", "hidden_sizes": (6, 4)},
        {"type": "stacked_bigru", "hidden_sizes": (6, 4)},
        {"type": "alternating_lstm", "hidden_size": 6, "num_layers": 3},
        {"type": "stacked_highway_bilstm", "hidden_size": 4, "num_layers": 2},
    ],
    ids=lambda settings: settings["type"],
)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    """Each encoder that reads in both directions, of five features."""
    return EncoderConfig.model_validate(request.param).build(5)


LENGTHS = [2, 7, 1, 4]


def test_neither_padding_nor_neighbours_change_a_sentence_or_a_gradient(encoder: Encoder) -> None:
    mask = mask_of(LENGTHS, 9)  # wider than the longest sentence
    inputs, weights = torch.randn(4, 9, 5), torch.randn(4, 9, encoder.output_size)
    results = []
    for value in (0.0, 1e6):
        filled = inputs.masked_fill(~mask.unsqueeze(2), value).requires_grad_()
        outputs = encoder(filled, mask)
        results.append([outputs, *gradients(outputs, weights, [filled, *encoder.parameters()])])
        for each in results[-1][:2]:  # the outputs, and the gradient of the inputs
            assert (each[~mask] == 0).all()
            assert each[mask].any(dim=1).all()
    for first, second in zip(*results, strict=True):
        assert torch.equal(first, second)
    for row, length in enumerate(LENGTHS):
        alone = encoder(inputs[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0])
        (alone[0] * weights[row, :length]).sum().backward()
    for parameter, whole in zip(encoder.parameters(), results[0][2:], strict=True):  # those of sentences add up
        torch.testing.assert_close(parameter.grad, whole, atol=1e-5, rtol=1e-5)


def test_every_token_sees_all_of_its_sentence_also_in_inference_mode(encoder: Encoder) -> None:
    inputs, mask = torch.randn(1, 5, 5, requires_grad=True), mask_of([5])
    outputs = encoder.eval()(inputs, mask)
    (gradient,) = torch.autograd.grad(outputs[0, 2].sum(), inputs)
    assert gradient[0].any(1).all()
    with torch.inference_mode():
        torch.testing.assert_close(encoder(inputs, mask), outputs)


def test_dropout_is_on_each_layers_input() -> None:
    encoder = StackedBiLstmConfig(hidden_sizes=(30,), dropout=0.5).build(40)
    seen: list[torch.Tensor] = []
    encoder.layers[0].register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0][0]))
    encoder(torch.ones(1, 6, 40), torch.ones(1, 6, dtype=torch.bool))
    assert set(seen[0].unique().tolist()) == {0.0, 2.0}
    assert torch.equal(seen[0], seen[0][:1].expand(6, 40))


def test_weights_start_orthogonal_with_a_forget_bias_of_one() -> None:
    lstm = nn.LSTM(30, 50, bidirectional=True)
    initialize_gates(lstm)
    bound = (6 / (30 + 50)) ** 0.5  # Glorot's uniform distribution, of each gate
    for suffix in ("_l0", "_l0_reverse"):
        state = lstm.state_dict()
        for gate in state[f"weight_hh{suffix}"].chunk(4):
            torch.testing.assert_close(gate @ gate.t(), torch.eye(50))
        for gate in state[f"weight_ih{suffix}"].chunk(4):
            assert 0.95 * bound < gate.abs().max() <= bound
        bias = state[f"bias_ih{suffix}"] + state[f"bias_hh{suffix}"]
        assert [gate.unique().tolist() for gate in bias.chunk(4)] == [[0.0], [1.0], [0.0], [0.0]]


def test_a_gru_starts_orthogonal_without_biases() -> None:
    (layer,) = StackedBiGruConfig(hidden_sizes=(5,)).build(3).layers
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            assert not parameter.any()
        elif name.startswith("weight_hh"):
            for gate in parameter.chunk(3):
                torch.testing.assert_close(gate @ gate.t(), torch.eye(5))


@pytest.mark.parametrize(("name", "kind"), [("stacked_bilstm", nn.LSTM), ("stacked_bigru", nn.GRU)])
def test_one_direction_is_torch_s_and_sees_nothing_that_comes_later(name: str, kind: type[nn.RNNBase]) -> None:
    config = EncoderConfig.model_validate({"type": name, "hidden_sizes": (6, 4), "bidirectional": False})
    encoder = config.build(5)
    assert encoder.output_size == 4
    mask = torch.arange(7) < torch.tensor([[3], [7]])
    inputs = torch.randn(2, 7, 5).masked_fill(~mask.unsqueeze(2), 1e4)
    outputs = encoder(inputs, mask)
    for row, length in enumerate((3, 7)):
        values = inputs[row : row + 1, :length]
        for number, size in enumerate((6, 4)):
            layer = kind(values.shape[2], size, batch_first=True)  # type: ignore[call-arg, arg-type]
            layer.load_state_dict(encoder.get_submodule(f"layers.{number}").state_dict())
            values, _ = layer(values)
        torch.testing.assert_close(outputs[row, :length], values[0])
    assert (outputs[~mask] == 0).all()


def test_pass_through_gives_the_input_and_zeros_in_the_padding() -> None:
    encoder = EncoderConfig.model_validate({"type": "pass_through"}).build(5)
    inputs, mask = torch.randn(2, 3, 5), mask_of([3, 1])
    outputs = encoder(inputs, mask)
    assert encoder.output_size == 5
    assert torch.equal(outputs[mask], inputs[mask])
    assert not outputs[~mask].any()


def test_drops_the_same_features_at_every_token_and_others_in_every_sentence() -> None:
    outputs = VariationalDropout(0.25)(torch.ones(200, 7, 50))
    dropped = outputs == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert not torch.equal(dropped[0], dropped[1])
    torch.testing.assert_close(outputs[~dropped], torch.full_like(outputs[~dropped], 4 / 3))
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.02)


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
    plain = FeedForward(1, (1000,), dropout=0.25)
    torch.nn.init.zeros_(plain.get_parameter("layers.0.weight"))
    torch.nn.init.ones_(plain.get_parameter("layers.0.bias"))
    outputs = plain(torch.ones(1, 1))
    assert outputs.unique().tolist() == [0, pytest.approx(4 / 3)]
    assert outputs.mean().item() == pytest.approx(1, abs=0.1)


def test_weights_start_after_glorot_and_biases_at_zero() -> None:
    (layer,) = FeedForwardConfig(hidden_sizes=(50,)).build(30).layers
    bound = (6 / (30 + 50)) ** 0.5
    assert 0.95 * bound < layer.get_parameter("weight").abs().max() <= bound
    assert not layer.get_parameter("bias").any()


def test_only_maxout_has_pieces() -> None:
    config: dict[str, Any] = {"hidden_sizes": (6,), "pieces": 3}
    assert FeedForwardConfig(**config, activation="maxout").build(2).layers[0].weight.shape == (18, 2)
    assert FeedForwardConfig(**config).build(2).layers[0].weight.shape == (6, 2)
