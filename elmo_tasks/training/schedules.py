"""Learning rate schedules, built on torch's; each moves by step, by epoch or by the validation metric."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch.optim import lr_scheduler

from elmo_tasks.config import Part

Factor = Annotated[float, Field(gt=0, lt=1)]


@dataclasses.dataclass
class Schedule:
    """One of torch's schedulers, and when it moves."""

    scheduler: Any
    moves: Literal["step", "epoch", "metric"]

    def after_step(self) -> None:
        if self.moves == "step":
            self.scheduler.step()

    def after_epoch(self, metric: float) -> None:
        if self.moves == "epoch":
            self.scheduler.step()
        elif self.moves == "metric":
            self.scheduler.step(metric)


class SchedulerConfig(Part):
    """How the learning rates change: each is the optimizer's own times the schedule's factor."""

    default_type: ClassVar[str | None] = "constant"
    moves: ClassVar[Literal["step", "epoch", "metric"]] = "step"
    spans_training: ClassVar[bool] = False  # whether the rates depend on the number of steps of the whole training

    def build(self, optimizer: torch.optim.Optimizer, num_steps: int, higher_is_better: bool) -> Schedule:
        """The schedule over a training of `num_steps` optimizer steps.

        Arguments:
            higher_is_better: whether a higher validation metric is better.
        """
        raise NotImplementedError


class Constant(SchedulerConfig):
    type: Literal["constant"] = "constant"

    def build(self, optimizer: torch.optim.Optimizer, num_steps: int, higher_is_better: bool) -> Schedule:
        return Schedule(lr_scheduler.LambdaLR(optimizer, lambda step: 1.0), self.moves)


class _Decay(SchedulerConfig):
    spans_training: ClassVar[bool] = True
    warmup_steps: Annotated[int, Field(ge=0)] = Field(0, description="steps of linear growth from 0 at the start")
    final: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def build(self, optimizer: torch.optim.Optimizer, num_steps: int, higher_is_better: bool) -> Schedule:
        def factor(step: int) -> float:
            if step < self.warmup_steps:
                return (step + 1) / (self.warmup_steps + 1)
            done = min(1.0, (step - self.warmup_steps) / max(1, num_steps - self.warmup_steps))
            return self.final + (1 - self.final) * self._left(done)

        return Schedule(lr_scheduler.LambdaLR(optimizer, factor), self.moves)

    def _left(self, done: float) -> float:
        """The share of the way from the final rate to the full one, where this share of the steps is done."""
        raise NotImplementedError


class LinearDecay(_Decay):
    """Falls in a straight line, step by step, to `final` of the rate at the end of the last epoch."""

    type: Literal["linear_decay"] = "linear_decay"
    decay_share: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="share of the steps, at the end, in which the rate falls; before, it is constant"
    )

    def _left(self, done: float) -> float:
        return min(1.0, (1 - done) / self.decay_share)


class CosineDecay(_Decay):
    """Falls along half a cosine, step by step, to `final` of the rate at the end of the last epoch."""

    type: Literal["cosine_decay"] = "cosine_decay"

    def _left(self, done: float) -> float:
        return 0.5 * (1 + math.cos(math.pi * done))


class Exponential(SchedulerConfig):
    """Multiplies the rate by `gamma` after each epoch."""

    type: Literal["exponential"] = "exponential"
    moves: ClassVar[Literal["epoch"]] = "epoch"
    gamma: Factor

    def build(self, optimizer: torch.optim.Optimizer, num_steps: int, higher_is_better: bool) -> Schedule:
        return Schedule(lr_scheduler.ExponentialLR(optimizer, self.gamma), self.moves)


class ReduceOnPlateau(SchedulerConfig):
    """Multiplies the rate by `factor` once the validation metric has not improved for more than `patience` epochs."""

    type: Literal["reduce_on_plateau"] = "reduce_on_plateau"
    moves: ClassVar[Literal["metric"]] = "metric"
    factor: Factor = 0.5
    patience: Annotated[int, Field(ge=0)] = 0
    min_lr: Annotated[float, Field(ge=0)] = 0.0

    def build(self, optimizer: torch.optim.Optimizer, num_steps: int, higher_is_better: bool) -> Schedule:
        settings = self.model_dump(exclude={"type"})
        mode: Literal["max", "min"] = "max" if higher_is_better else "min"
        return Schedule(lr_scheduler.ReduceLROnPlateau(optimizer, mode=mode, threshold=0.0, **settings), self.moves)
