"""A moving average of the parameters, which replaces them when the model is evaluated and saved."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from elmo_tasks.config import Config


class MovingAverageConfig(Config):
    """An exponential moving average: after each step, average = decay x average + (1 - decay) x parameter."""

    decay: Annotated[float, Field(gt=0, lt=1)] = 0.999

    def build(self, parameters: Sequence[torch.nn.Parameter]) -> MovingAverage:
        return MovingAverage(parameters, self.decay)


class MovingAverage:
    """The averages of some parameters.

    In the first steps, about 9 / (1 - decay), the decay is smaller, (1 + steps) / (10 + steps), so that the average
    forgets the random start.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], decay: float) -> None:
        self._parameters = list(parameters)
        self._decay = decay
        self._averages = [parameter.detach().clone() for parameter in parameters]
        self._steps = 0

    @torch.no_grad()
    def update(self) -> None:
        """Adds the parameters as they are after a step."""
        self._steps += 1
        decay = min(self._decay, (1 + self._steps) / (10 + self._steps))
        get_ema_multi_avg_fn(decay)(self._averages, [each.detach() for each in self._parameters], self._steps)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Within the block the parameters have their averages' values."""
        own = [parameter.detach().clone() for parameter in self._parameters]
        self._set(self._averages)
        try:
            yield
        finally:
            self._set(own)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        for parameter, value in zip(self._parameters, values, strict=True):
            parameter.copy_(value)

    def state_dict(self) -> dict[str, object]:
        return {"steps": self._steps, "averages": self._averages}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self._steps = state["steps"]  # type: ignore[assignment]
        for average, saved in zip(self._averages, state["averages"], strict=True):  # type: ignore[call-overload]
            average.copy_(saved)
