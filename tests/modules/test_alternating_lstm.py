"""The layers against the equations of the paper, step by step, in values and gradients; padding and directions."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.modules.alternating_lstm import AlternatingLstm, AlternatingLstmConfig, HighwayLstm
from tests.modules.helpers import gradients, mask_of


def plain_layer(layer: Any, sentence: Tensor, dropout: Tensor | None = None) -> Tensor:
    """The equations of He et al. (2017) for one sentence, (T, D) -> (T, H)."""
    size = layer.recurrent_weight.shape[1]
    weight, highway = layer.input_weight.split([5 * size, size])
    bias = torch.zeros(size) if layer.highway_bias is None else layer.highway_bias
    hidden = cell = sentence.new_zeros(size)
    outputs = []
    for word in sentence:
        sums = weight @ word + layer.recurrent_weight @ hidden + layer.bias
        enter, candidate, forget, leave, carry = sums.chunk(5)
        cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
        hidden = carry.sigmoid() * leave.sigmoid() * cell.tanh() + (1 - carry.sigmoid()) * (highway @ word + bias)
        hidden = hidden if dropout is None else dropout * hidden
        outputs.append(hidden)
    return torch.stack(outputs)


def plain_stack(encoder: AlternatingLstm, sentence: Tensor) -> Tensor:
    for number, layer in enumerate(encoder.layers):
        values = plain_layer(layer, sentence if number % 2 == 0 else sentence.flip(0))
        sentence = values if number % 2 == 0 else values.flip(0)
    return sentence


@pytest.mark.parametrize(("steps", "highway_bias"), [(1, False), (2, True), (7, False), (7, True)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_a_layer_is_the_paper_s_in_values_and_gradients(
    steps: int, highway_bias: bool, dtype: torch.dtype, tolerance: float
) -> None:
    layer = HighwayLstm(5, 4, highway_bias=highway_bias).to(dtype)
    torch.nn.init.normal_(layer.bias)
    if layer.highway_bias is not None:
        torch.nn.init.normal_(layer.highway_bias)
    inputs = torch.randn(steps, 3, 5, dtype=dtype, requires_grad=True)
    weights = torch.randn(steps, 3, 4, dtype=dtype)
    outputs = layer(inputs)
    expected = torch.stack([plain_layer(layer, sentence) for sentence in inputs.unbind(1)], dim=1)
    torch.testing.assert_close(outputs, expected, atol=tolerance, rtol=0)
    variables = [inputs, *layer.parameters()]
    ours, theirs = gradients(outputs, weights, variables), gradients(expected, weights, variables)
    torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_directions_alternate(num_layers: int) -> None:
    encoder = AlternatingLstmConfig(hidden_size=4, num_layers=num_layers).build(5).double()
    lengths = [3, 6, 1, 5]
    inputs = torch.randn(4, 6, 5, dtype=torch.float64)
    outputs = encoder(inputs, mask_of(lengths))
    for row, length in enumerate(lengths):
        torch.testing.assert_close(outputs[row, :length], plain_stack(encoder, inputs[row, :length]))
        assert not outputs[row, length:].any()


def test_dropout_is_one_mask_a_sentence_on_state_and_output() -> None:
    layer = HighwayLstm(5, 40, dropout=0.4).double()
    inputs = torch.randn(9, 3, 5, dtype=torch.float64)
    outputs = layer(inputs)
    kept = outputs != 0  # (T, B, H)
    assert torch.equal(kept, kept[:1].expand_as(kept))
    assert not torch.equal(kept[0, 0], kept[0, 1])
    assert 0.4 < kept[0].double().mean() < 0.8
    for row in range(3):
        factors = kept[0, row] / 0.6
        torch.testing.assert_close(outputs[:, row], plain_layer(layer, inputs[:, row], factors))
    layer.eval()
    torch.testing.assert_close(layer(inputs)[:, 0], plain_layer(layer, inputs[:, 0]))


def test_fresh_weights_are_orthogonal_and_cells_remember() -> None:
    layer = HighwayLstm(12, 8)
    for block in layer.input_weight.split(8):
        torch.testing.assert_close(block @ block.t(), torch.eye(8))
    for block in layer.recurrent_weight.split(8):
        torch.testing.assert_close(block @ block.t(), torch.eye(8))
    assert layer.bias.view(5, 8).tolist() == [[0.0] * 8, [0.0] * 8, [1.0] * 8, [0.0] * 8, [0.0] * 8]
    assert [layer.input_weight.shape[0], layer.recurrent_weight.shape[0]] == [48, 40]


def test_states_of_half_precision_inputs_add_up_in_single_precision() -> None:
    layer = HighwayLstm(1, 1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias.copy_(torch.tensor([0.0, 0.0016, 20.0, 20.0, 20.0]))  # enter, candidate, forget, leave, carry
    outputs = layer.to(torch.bfloat16)(torch.zeros(1000, 1, 1, dtype=torch.bfloat16))
    assert outputs.dtype == torch.bfloat16
    assert outputs[-1].item() == pytest.approx(math.tanh(1000 * 0.5 * 0.0016), rel=0.02)
