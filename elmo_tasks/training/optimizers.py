"""Torch's optimizers under their names, with learning rates of their own for named parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field

from elmo_tasks.config import Config, Part
from elmo_tasks.errors import ConfigError

Rate = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
NamedParameters = list[tuple[str, torch.nn.Parameter]]


class ParameterGroup(Config):
    """Settings for the parameters whose names a regular expression finds; the first group that finds a name has it."""

    parameters: str = Field(description="regular expression, searched in the parameters' names")
    lr: Rate | None = Field(None, description="learning rate, in place of the optimizer's")
    weight_decay: NotNegative | None = Field(None, description="weight decay, in place of the optimizer's")


class OptimizerConfig(Part):
    """One of torch's optimizers; the fields and defaults are torch's."""

    default_type: ClassVar[str | None] = "adam"

    lr: Rate = 0.001
    weight_decay: NotNegative = 0.0
    parameter_groups: tuple[ParameterGroup, ...] = Field((), description="settings for some of the parameters alone")

    def build(self, parameters: NamedParameters) -> torch.optim.Optimizer:
        """The optimizer of the named parameters.

        Raises:
            ConfigError: a group's expression finds no parameter, or is no regular expression.
        """
        return self._build(self._groups(parameters))

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        raise NotImplementedError

    def _groups(self, parameters: NamedParameters) -> list[dict[str, Any]]:
        rest = dict(parameters)
        groups = []
        for group in self.parameter_groups:
            chosen = find_parameters(rest, group.parameters, "trainer.optimizer.parameter_groups")
            settings = {key: value for key in ("lr", "weight_decay") if (value := getattr(group, key)) is not None}
            groups.append({"params": [rest.pop(name) for name in chosen], **settings})
        return [*groups, {"params": list(rest.values())}] if rest else groups


def find_parameters(names: Iterable[str], expression: str, key: str) -> list[str]:
    """The names that a regular expression finds.

    Raises:
        ConfigError: it finds none, or is no regular expression; `key` is where the config has it.
    """
    names = list(names)
    try:
        found = [name for name in names if re.search(expression, name)]
    except re.error as error:
        raise ConfigError(f"{key}: {expression!r} is no regular expression: {error}") from None
    if not found:
        raise ConfigError(f"{key}: {expression!r} finds no parameter; the model's are {', '.join(names)}")
    return found


class Adam(OptimizerConfig):
    type: Literal["adam"] = "adam"
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    amsgrad: bool = False

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.Adam(
            groups,
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            weight_decay=self.weight_decay,
            amsgrad=self.amsgrad,
            fused=_has_fused_step(groups),
        )


class AdamW(OptimizerConfig):
    type: Literal["adamw"] = "adamw"
    weight_decay: NotNegative = 0.01
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            groups,
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            weight_decay=self.weight_decay,
            fused=_has_fused_step(groups),
        )


class NAdam(OptimizerConfig):
    type: Literal["nadam"] = "nadam"
    lr: Rate = 0.002
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    momentum_decay: NotNegative = 0.004

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.NAdam(
            groups,
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            weight_decay=self.weight_decay,
            momentum_decay=self.momentum_decay,
        )


class Sgd(OptimizerConfig):
    type: Literal["sgd"] = "sgd"
    lr: Rate = 0.1
    momentum: Fraction = 0.0
    nesterov: bool = False

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            groups, lr=self.lr, momentum=self.momentum, nesterov=self.nesterov, weight_decay=self.weight_decay
        )


class Adagrad(OptimizerConfig):
    type: Literal["adagrad"] = "adagrad"
    lr: Rate = 0.01
    initial_accumulator_value: NotNegative = 0.0
    eps: Rate = 1e-10

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.Adagrad(
            groups,
            lr=self.lr,
            initial_accumulator_value=self.initial_accumulator_value,
            eps=self.eps,
            weight_decay=self.weight_decay,
        )


class Adadelta(OptimizerConfig):
    type: Literal["adadelta"] = "adadelta"
    lr: Rate = 1.0
    rho: Fraction = 0.9
    eps: Rate = 1e-6

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.Adadelta(groups, lr=self.lr, rho=self.rho, eps=self.eps, weight_decay=self.weight_decay)


class RmsProp(OptimizerConfig):
    type: Literal["rmsprop"] = "rmsprop"
    lr: Rate = 0.01
    alpha: Fraction = 0.99
    eps: Rate = 1e-8
    momentum: Fraction = 0.0
    centered: bool = False

    def _build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.RMSprop(
            groups,
            lr=self.lr,
            alpha=self.alpha,
            eps=self.eps,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            centered=self.centered,
        )


def _has_fused_step(groups: Iterable[dict[str, Any]]) -> bool | None:
    """Whether to update all values of a parameter in one pass; None leaves it to torch, which does not on the CPU.

    There the dozen passes of a plain step over parameters, gradients and moments cost as much as the memory is slow.
    """
    kinds = {parameter.device.type for group in groups for parameter in group["params"]}
    return True if kinds <= {"cpu", "cuda"} else None
