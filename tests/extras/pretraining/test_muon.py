"""Muon: what it does to matrices, and that all other parameters move as with Adam."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from elmo_tasks.errors import ConfigError
from elmo_tasks.extras.pretraining.muon import MuonWithAdam, orthogonalized
from elmo_tasks.training.optimizers import OptimizerConfig


@pytest.mark.parametrize("shape", [(3, 64, 32), (2, 32, 64), (1, 16, 16)])
def test_singular_vectors_stay_and_singular_values_become_like_one(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(1)
    matrices = torch.randn(shape)
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    diagonal = left.mT @ orthogonalized(matrices).float() @ right.mT  # what it does to each singular vector
    values = diagonal.diagonal(dim1=1, dim2=2)
    expected = torch.linalg.svdvals(matrices) / torch.linalg.matrix_norm(matrices)[:, None]
    for _ in range(5):  # the published number: one more or less changes some values by 0.4
        expected = 3.4445 * expected - 4.7750 * expected**3 + 2.0315 * expected**5
    torch.testing.assert_close(values, expected, rtol=0, atol=0.05)
    assert ((values > 0.6) & (values < 1.3)).all()
    assert (diagonal - torch.diag_embed(values)).abs().max() < 0.05


@pytest.mark.parametrize("zeros", [(), (0,), (0, 1)])
def test_gradients_of_zeros_move_nothing(zeros: tuple[int, ...]) -> None:
    matrices = torch.randn(2, 8, 4)
    matrices[list(zeros)] = 0.0
    updates = orthogonalized(matrices)
    assert updates.isfinite().all()
    assert all(updates[index].any() != (index in zeros) for index in range(2))


def layers() -> Any:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv1d(6, 8, 3))


def optimizer_of(module: nn.Module, **group: object) -> torch.optim.Optimizer:
    config = {"type": "muon", "lr": 0.01, "parameter_groups": ({"parameters": "0.weight", **group},)}
    return OptimizerConfig.model_validate(config).build(module.named_parameters())


def train(module: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> float:
    torch.manual_seed(3)
    inputs = torch.randn(50, 6)
    for _ in range(steps):
        loss = (module(inputs) - inputs[:, :2]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.mark.parametrize("shape", [(8, 6), (4, 9)])
def test_a_matrix_moves_as_with_torch_s_muon(shape: tuple[int, int]) -> None:
    ours, theirs = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.ones(shape))
    settings: dict[str, Any] = {"lr": 0.02, "weight_decay": 0.5}
    optimizers = MuonWithAdam([{"params": [ours], "blocks": 1}], **settings), torch.optim.Muon([theirs], **settings)
    for _ in range(3):
        gradient = torch.randn(shape)
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-3)


def test_all_other_parameters_move_as_with_adam() -> None:
    module, other = layers(), layers()
    train(module, optimizer_of(module, blocks=1, lr=0.02), 1)
    train(other, torch.optim.Adam(other.parameters(), lr=0.01, fused=True), 1)
    for name in ("0.bias", "2.weight", "2.bias"):
        torch.testing.assert_close(module.get_parameter(name), other.get_parameter(name))


def test_each_block_of_rows_is_a_matrix() -> None:
    whole, parts = layers(), [layers()[0].weight.detach()[:4], layers()[0].weight.detach()[4:]]
    gradient = torch.randn(8, 6)
    whole[0].weight.grad = gradient.clone()
    optimizer_of(whole, blocks=2).step()
    for rows, part in zip((slice(0, 4), slice(4, 8)), parts, strict=True):
        parameter = nn.Parameter(part.clone())
        parameter.grad = gradient[rows].clone()
        MuonWithAdam([{"params": [parameter], "blocks": 1}], lr=0.01).step()
        torch.testing.assert_close(whole[0].weight[rows], parameter)


def test_training_goes_on_from_a_state_as_if_it_had_not_stopped() -> None:
    module = layers()
    optimizer = optimizer_of(module, blocks=2, weight_decay=0.1)
    first = train(module, optimizer, 5)
    state = copy.deepcopy((module.state_dict(), optimizer.state_dict()))
    last = train(module, optimizer, 30)
    other = layers()
    other.load_state_dict(state[0])
    resumed = optimizer_of(other, blocks=2, weight_decay=0.1)
    resumed.load_state_dict(state[1])
    assert train(other, resumed, 30) == last < first


@pytest.mark.parametrize(
    ("make", "parameters", "blocks", "message"),
    [
        (layers, "0.weight", 3, "0.weight has 8 rows; expected a multiple of its 3 blocks"),
        (layers, "0.bias", 1, r"0.bias has the shape \(8,\); expected a matrix"),
        (convolution, "0.weight", 1, r"0.weight has the shape \(8, 6, 3\); expected a matrix"),
    ],
)
def test_parameters_that_are_not_such_matrices_are_named(
    make: Callable[[], nn.Module], parameters: str, blocks: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"trainer.optimizer.parameter_groups: {message}"):
        optimizer_of(make(), parameters=parameters, blocks=blocks)
