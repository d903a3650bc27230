from __future__ import annotations

import pydantic
import pytest
import torch
from torch import nn

from elmo_tasks.modules.encoders import (
    EncoderConfig,
    StackedBiGru,
    StackedBiGruConfig,
    StackedBiLstm,
    StackedBiLstmConfig,
    initialize_gates,
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


STACKED = pytest.mark.parametrize("stacked", [StackedBiLstm, StackedBiGru])


@pytest.mark.parametrize(
    ("name", "kind"), [("stacked_bilstm", StackedBiLstmConfig), ("stacked_bigru", StackedBiGruConfig)]
)
def test_config_chooses_by_type(name: str, kind: type[EncoderConfig]) -> None:
    config = EncoderConfig.model_validate({"type": name, "hidden_sizes": (6, 4)})
    assert isinstance(config, kind)
    encoder = config.build(5)
    assert encoder.output_size == 8
    assert encoder(torch.randn(2, 3, 5), torch.ones(2, 3, dtype=torch.bool)).shape == (2, 3, 8)


@pytest.mark.parametrize("settings", [{"hidden_sizes": ()}, {"hidden_sizes": (3, 0)}, {"dropout": 1.0}])
def test_config_refuses(settings: dict[str, object]) -> None:
    with pytest.raises(pydantic.ValidationError):
        StackedBiLstmConfig.model_validate(settings)


@STACKED
def test_neither_padding_nor_neighbours_change_a_sentence(stacked: type[StackedBiLstm] | type[StackedBiGru]) -> None:
    encoder = stacked(5, (6, 4))
    lengths = [2, 7, 1, 4]
    mask = torch.arange(9) < torch.tensor(lengths).unsqueeze(1)  # wider than the longest sentence
    inputs = torch.randn(4, 9, 5).masked_fill(~mask.unsqueeze(2), 1e9)
    together = encoder(inputs, mask)
    for row, length in enumerate(lengths):
        alone = encoder(inputs[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0])
    assert (together[~mask] == 0).all()


@STACKED
def test_output_depends_on_both_sides(stacked: type[StackedBiLstm] | type[StackedBiGru]) -> None:
    encoder = stacked(5, (6, 4)).eval()
    inputs = torch.randn(1, 5, 5, requires_grad=True)
    encoder(inputs, torch.ones(1, 5, dtype=torch.bool))[0, 2].sum().backward()
    assert inputs.grad is not None
    assert (inputs.grad[0].abs().sum(1) > 0).all()


@STACKED
def test_dropout_is_on_each_layers_input(stacked: type[StackedBiLstm] | type[StackedBiGru]) -> None:
    encoder = stacked(40, (30,), dropout=0.5)
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
    (layer,) = StackedBiGru(3, (5,)).layers
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
