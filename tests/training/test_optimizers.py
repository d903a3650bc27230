from typing import Any

import pydantic
import pytest
import torch
from torch import nn

from elmo_tasks.errors import ConfigError
from elmo_tasks.training.callbacks import Progress
from elmo_tasks.training.optimizers import OptimizerConfig
from elmo_tasks.training.schedules import SchedulerConfig
from elmo_tasks.training.trainer_config import MovingAverageConfig


def parameters() -> list[tuple[str, nn.Parameter]]:
    return [(name, nn.Parameter(torch.full((2,), 2.0))) for name in ("embedder.words", "encoder.weight", "crf.start")]


@pytest.mark.parametrize("name", OptimizerConfig.choices())
def test_each_optimizer_is_torchs_and_moves_parameters(name: str) -> None:
    named = parameters()
    optimizer = OptimizerConfig.model_validate({"type": name}).build(named)
    assert type(optimizer).__name__.lower().startswith(name)
    assert isinstance(optimizer, torch.optim.Optimizer)
    for _, parameter in named:
        parameter.grad = torch.ones(2)
    optimizer.step()
    assert all((parameter < 2.0).all() for _, parameter in named)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_steps_of_one_pass_are_the_plain_ones(kind: type[torch.optim.Adam]) -> None:
    torch.manual_seed(1)
    named = [("weight", nn.Parameter(torch.randn(7, 9))), ("bias", nn.Parameter(torch.randn(9)))]
    plain = [nn.Parameter(parameter.detach().clone()) for _, parameter in named]
    optimizer = OptimizerConfig.model_validate({"type": kind.__name__.lower(), "weight_decay": 0.1}).build(named)
    assert optimizer.param_groups[0]["fused"]
    reference = kind(plain, weight_decay=0.1, foreach=False)
    for _ in range(5):
        for (_, parameter), other in zip(named, plain, strict=True):
            parameter.grad = torch.randn_like(parameter)
            other.grad = parameter.grad.clone()
        optimizer.step()
        reference.step()
    for (_, parameter), other in zip(named, plain, strict=True):
        torch.testing.assert_close(parameter, other)


def test_groups_have_their_own_settings() -> None:
    config = OptimizerConfig.model_validate(
        {
            "type": "adamw",
            "lr": 0.1,
            "parameter_groups": ({"parameters": "^embedder", "lr": 0.5}, {"parameters": "start", "weight_decay": 0.0}),
        }
    )
    named = parameters()
    groups = config.build(named).param_groups
    assert [(group["lr"], group["weight_decay"]) for group in groups] == [(0.5, 0.01), (0.1, 0.0), (0.1, 0.01)]
    assert [group["params"][0] is named[index][1] for group, index in zip(groups, (0, 2, 1), strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"type": "sgd", "nesterov": True}, "'nesterov' needs momentum; expected 'momentum' above 0"),
        ({"parameter_groups": ({"parameters": "("},)}, r"'\(' is not a regular expression: missing \)"),
        (
            {"parameter_groups": ({"parameters": "decoder"},)},
            "'decoder' matches no parameter; the model's are embedder.words, ",
        ),
        (
            {"parameter_groups": ({"parameters": ""}, {"parameters": "embedder"})},
            "'embedder' matches only parameters of earlier groups",
        ),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((pydantic.ValidationError, ConfigError), match=message):  # the config's, or with this model
        OptimizerConfig.model_validate(settings).build(parameters())


def test_nesterov_with_momentum_is_possible() -> None:
    OptimizerConfig.model_validate({"type": "sgd", "nesterov": True, "momentum": 0.9}).build(parameters())


def rates(
    config: dict[str, object], steps_per_epoch: int, metrics: list[float], higher_is_better: bool = True
) -> list[float]:
    """The rate of each step of a training with base rate 1."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    num_steps = steps_per_epoch * len(metrics)
    schedule = SchedulerConfig.model_validate(config).build(optimizer, num_steps, higher_is_better)
    seen = []
    for metric in metrics:
        for _ in range(steps_per_epoch):
            seen.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.after_step()
        schedule.after_epoch(metric)
    return seen


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, [1, 1, 1, 1, 1, 1]),
        ({"type": "linear_decay"}, [1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        ({"type": "linear_decay", "warmup_steps": 2}, [1 / 3, 2 / 3, 1, 3 / 4, 2 / 4, 1 / 4]),
        ({"type": "linear_decay", "decay_share": 0.5}, [1, 1, 1, 1, 4 / 6, 2 / 6]),
        ({"type": "linear_decay", "decay_share": 0.5, "warmup_steps": 2}, [1 / 3, 2 / 3, 1, 1, 1, 0.5]),
        ({"type": "linear_decay", "final": 0.5}, [1, 11 / 12, 10 / 12, 9 / 12, 8 / 12, 7 / 12]),
        ({"type": "cosine_decay", "warmup_steps": 2}, [1 / 3, 2 / 3, 1, 0.853553, 0.5, 0.146447]),
        ({"type": "cosine_decay", "final": 0.2}, [1, 0.946410, 0.8, 0.6, 0.4, 0.253590]),
        ({"type": "exponential", "gamma": 0.5}, [1, 1, 0.5, 0.5, 0.25, 0.25]),
        ({"type": "reduce_on_plateau"}, [1, 1, 1, 1, 0.5, 0.5]),
        ({"type": "reduce_on_plateau", "factor": 0.1, "min_lr": 0.3}, [1, 1, 1, 1, 0.3, 0.3]),
        ({"type": "linear_decay", "warmup_steps": 6}, [1 / 7, 2 / 7, 3 / 7, 4 / 7, 5 / 7, 6 / 7]),
    ],
)
def test_schedules(config: dict[str, object], expected: list[float]) -> None:
    assert rates(config, steps_per_epoch=2, metrics=[50.0, 50.0, 60.0]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["linear_decay", "cosine_decay"])
def test_the_rate_stays_where_it_ended_if_there_are_more_steps_than_were_planned(kind: str) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = SchedulerConfig.model_validate({"type": kind, "final": 0.25}).build(optimizer, 2, True)
    seen = []
    for _ in range(5):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.after_step()
    assert seen == pytest.approx([1, 0.625, 0.25, 0.25, 0.25])


def test_late_in_training_the_average_has_its_own_decay() -> None:
    parameter = nn.Parameter(torch.tensor([1.0]))
    average = MovingAverageConfig().build([parameter])
    with pytest.raises(ValueError, match="zip"):  # of another model
        average.load_state_dict({"steps": 1, "averages": []})
    average.load_state_dict({"steps": 10**6, "averages": [torch.tensor([0.0])]})
    average.on_step(Progress(), 0.0)
    with average.applied():
        assert parameter.item() == pytest.approx(0.001, rel=1e-4)


def test_moving_average_follows_and_applies_only_within_its_block() -> None:
    parameter = nn.Parameter(torch.tensor([0.0]))
    average = MovingAverageConfig(decay=0.2).build([parameter])
    expected = 0.0
    for step in range(1, 4):
        with torch.no_grad():
            parameter.add_(1.0)
        average.on_step(Progress(), 0.0)
        decay = min(0.2, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    with average.applied():
        assert parameter.item() == pytest.approx(expected)
    assert parameter.item() == 3.0


@pytest.mark.parametrize("sign", [1, -1])
def test_the_smallest_gain_keeps_the_rate_of_a_plateau_schedule(sign: int) -> None:
    config = {"type": "reduce_on_plateau", "factor": 0.5, "patience": 1}
    metrics = [sign * value for value in (50.0, 50.0001, 50.0001, 50.0002, 50.0002, 50.0001, 50.0001)]
    expected = [1, 1, 1, 1, 1, 1, 0.5]
    assert rates(config, 1, metrics, higher_is_better=sign > 0) == expected
