"""Torch's optimizers by name. Named parameters can have different learning rates and weight decays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import AfterValidator, Field, model_validator

from elmo_tasks.config import Config, Part
from elmo_tasks.errors import ConfigError

Rate = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, lt=1)]


def _checked_expression(expression: str) -> str:
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"{expression!r} is not a regular expression: {error}") from None
    return expression


ParameterNames = Annotated[
    str, AfterValidator(_checked_expression), Field(description="regular expression, searched in the parameters' names")
]


class ParameterGroup(Config):
    """Settings for the parameters whose names match a regular expression; the first group that matches a name wins."""

    parameters: ParameterNames
    lr: Rate | None = Field(None, description="learning rate, in place of the optimizer's")
    weight_decay: NotNegative | None = Field(None, description="weight decay, in place of the optimizer's")

    def check(self, parameters: Mapping[str, torch.nn.Parameter], key: str) -> None:
        """Raises `ConfigError` if the group cannot have one of these parameters; `key` is its key in the config."""


class OptimizerConfig(Part):
    """One of torch's optimizers, `torch_class`; the fields and, except for SGD's `lr`, the defaults are torch's."""

    default_type: ClassVar[str | None] = "adam"
    torch_class: ClassVar[Any]

    lr: Rate = 0.001
    weight_decay: NotNegative = 0.0
    parameter_groups: tuple[ParameterGroup, ...] = Field((), description="settings for some of the parameters only")

    def build(self, parameters: Iterable[tuple[str, torch.nn.Parameter]]) -> torch.optim.Optimizer:
        """The optimizer of the named parameters.

        Raises:
            ConfigError: a group's expression matches no parameter, or only those of earlier groups.
        """
        named, groups, key = dict(parameters), [], "trainer.optimizer.parameter_groups"
        rest = dict(named)
        devices = {parameter.device.type for parameter in named.values()}
        for group in self.parameter_groups:
            chosen = [name for name in find_parameters(named, group.parameters, key) if name in rest]
            if not chosen:
                raise ConfigError(f"{key}: {group.parameters!r} matches only parameters of earlier groups")
            own = group.model_dump(exclude={"parameters"}, exclude_none=True)
            group.check({name: rest[name] for name in chosen}, key)
            groups.append({"params": [rest.pop(name) for name in chosen], **own})
        if rest or not groups:  # torch needs a group, also for a model with nothing to train
            groups.append({"params": list(rest.values())})
        settings = self.model_dump(exclude={"type", "parameter_groups"})
        if issubclass(self.torch_class, torch.optim.Adam) and devices <= {"cpu", "cuda"}:
            # All values of a parameter in one pass, which torch does not choose by itself on the CPU. A plain step is
            # a dozen passes over parameters, gradients and moments, and memory is slow.
            settings["fused"] = True
        return self.torch_class(groups, **settings)


def find_parameters(names: Iterable[str], expression: str, key: str) -> list[str]:
    """The names that a regular expression matches.

    Raises:
        ConfigError: it matches none; `key` is its key in the config.
    """
    names = list(names)
    found = [name for name in names if re.search(expression, name)]
    if not found:
        raise ConfigError(f"{key}: {expression!r} matches no parameter; the model's are {', '.join(names)}")
    return found


class Adam(OptimizerConfig):
    torch_class = torch.optim.Adam
    type: Literal["adam"] = "adam"
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    amsgrad: bool = False


class AdamW(OptimizerConfig):
    torch_class = torch.optim.AdamW
    type: Literal["adamw"] = "adamw"
    weight_decay: NotNegative = 0.01
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8


class Sgd(OptimizerConfig):
    torch_class = torch.optim.SGD
    type: Literal["sgd"] = "sgd"
    lr: Rate = 0.1
    momentum: Fraction = 0.0
    nesterov: bool = False

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> Sgd:
        if self.nesterov and self.momentum == 0:
            raise ValueError("'nesterov' needs momentum; expected 'momentum' above 0")
        return self


class Adagrad(OptimizerConfig):
    torch_class = torch.optim.Adagrad
    type: Literal["adagrad"] = "adagrad"
    lr: Rate = 0.01
    initial_accumulator_value: NotNegative = 0.0
    eps: Rate = 1e-10


class Adadelta(OptimizerConfig):
    torch_class = torch.optim.Adadelta
    type: Literal["adadelta"] = "adadelta"
    lr: Rate = 1.0
    rho: Fraction = 0.9
    eps: Rate = 1e-6
