"""The loss that pretraining minimizes, and the states that its streams carry from window to window."""

from __future__ import annotations

import math
import resource
import sys
import time
from typing import Any

import torch
from accelerate.utils import send_to_device
from torch import Tensor

from elmo_tasks.pretraining.language_model import LanguageModel, LayerStates
from elmo_tasks.pretraining.softmax import SoftmaxConfig
from elmo_tasks.pretraining.windows import Window
from elmo_tasks.training.trainer import Objective, Trainer

_STEPS_TRIED = 4  # the first takes far longer


class StreamObjective(Objective):
    """The mean loss of a window's targets, in nats; each window begins with the states after the last one.

    Arguments:
        dtype: of the products' factors.
    """

    def __init__(self, model: LanguageModel, softmax: SoftmaxConfig, dtype: torch.dtype) -> None:
        super().__init__(model)
        self.dtype = dtype
        self.states: LayerStates | None = None  # of this process's streams; None: zeros
        self._softmax = softmax

    def forward(self, window: Window) -> Tensor:
        states = self.model.initial_states(window.inputs[0].shape[1]) if self.states is None else self.states
        candidates = self._softmax.draw(len(self.model.vocabulary))
        device = self.model.softmax_bias.device
        loss = self.model(window, states, candidates.to(device) if candidates else None, self.dtype)
        self.states = loss.states
        return loss.mean

    def state(self) -> dict[str, Any]:
        return {"dtype": str(self.dtype).removeprefix("torch."), "states": self.states}

    def load_state(self, state: dict[str, Any]) -> None:
        dtype = getattr(torch, state["dtype"])
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"{state['dtype']} is not a type of numbers")
        self.dtype = dtype
        self.states = send_to_device(state["states"], self.model.softmax_bias.device)


def try_out(trainer: Trainer, objective: StreamObjective, window: Window) -> tuple[float, int]:
    """Tries steps without changing weights or states: the seconds of the fastest, and the bytes that training needs."""
    device, states, seconds = trainer.accelerator.device, objective.states, math.inf
    for _ in range(_STEPS_TRIED):
        objective.states = states
        started = time.monotonic()
        loss = trainer.loss_of(window)
        trainer.accelerator.backward(loss)
        loss.item()
        seconds = min(seconds, time.monotonic() - started)
        trainer.optimizer.zero_grad()
    objective.states = states
    moments = 2 * sum(parameter.nbytes for parameter in trainer.parameters.values())
    if device.type == "cuda":
        return seconds, torch.cuda.max_memory_allocated(device) + moments
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit + moments
