"""What is called while a training runs: the moving average, patience, the progress bar, and what others add."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from elmo_tasks.progress import progress_bar

if TYPE_CHECKING:
    from elmo_tasks.training.trainer import Trainer


@dataclasses.dataclass
class Progress:
    """How far a training has come."""

    epoch: int = 0  # under way, from 0
    step: int = 0  # optimizer steps made
    seconds: float = 0.0  # of training, without evaluations
    records: int = 0  # records written, one for each evaluation
    recent_steps: int = 0  # since the last record
    recent_loss: float = 0.0  # summed over the steps
    recent_seconds: float = 0.0
    best_epoch: int | None = None  # from 1
    best_value: float | None = None
    best_loss: float | None = None  # on the validation data
    improved_epoch: int | None = None  # the last one with a better value, from 1; ties do not count

    def mean_loss(self) -> float:
        """The mean loss of the steps since the last record."""
        return self.recent_loss / max(1, self.recent_steps)

    def epochs_without_progress(self) -> int:
        """Epochs since the validation metric was better than in all epochs before."""
        return self.epoch - (self.improved_epoch or self.best_epoch or 0)  # earlier versions saved only the latter

    def note_value(self, value: float | None, loss: float, *, higher_is_better: bool) -> bool:
        """Takes the validation metric and loss of the epoch under way. Returns whether it is the best one so far.

        Of epochs with the same metric, the one with the lowest loss is the best. Without a metric, it is the last one.
        """
        if value is None:
            self.best_epoch = self.epoch + 1
            return True
        sign = 1 if higher_is_better else -1
        improved = not math.isnan(value) if self.best_value is None else sign * value > sign * self.best_value
        tied = value == self.best_value and self.best_loss is not None and loss < self.best_loss
        if improved:
            self.improved_epoch = self.epoch + 1
        if improved or tied:
            self.best_epoch, self.best_value, self.best_loss = self.epoch + 1, value, loss
        return improved or tied


class Callback:
    """A training calls its methods. Each does nothing until a subclass overrides it.

    Attributes:
        trainer: the training that calls it, set before `on_start`. A callback may call `trainer.stop()`,
            `trainer.save()` and `trainer.evaluate()`.
    """

    trainer: Trainer

    def on_start(self, progress: Progress) -> None:
        """Called before the first step of this process, which may be a later step of the run."""

    def on_step(self, progress: Progress, loss: float) -> None:
        """Called after each optimizer step with its loss."""

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        """Called after each evaluation with its record, which JSON can hold; the epoch still counts as under way."""

    def on_end(self) -> None:
        """Called at the end, also when an error ends the training."""


class Patience(Callback):
    """Stops the training after some epochs without a better validation metric."""

    def __init__(self, most_epochs: int) -> None:
        self._most_epochs = most_epochs

    def on_start(self, progress: Progress) -> None:
        if progress.epochs_without_progress() >= self._most_epochs:  # a run that is resumed after its last epoch
            self.trainer.stop()

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        if progress.epochs_without_progress() + 1 >= self._most_epochs:  # with the epoch that ends now
            self.trainer.stop()


class MovingAverage(Callback):
    """An exponential moving average of parameters, which replaces them when the model is evaluated and saved.

    After each step, average = decay x average + (1 - decay) x parameter. In the first steps, about 9 / (1 - decay), the
    decay is smaller, (1 + steps) / (10 + steps), so that the average forgets the random start.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], decay: float) -> None:
        self._parameters = list(parameters)
        self._decay = decay
        self._averages = [parameter.detach().clone() for parameter in parameters]
        self._steps = 0

    @torch.no_grad()
    def on_step(self, progress: Progress, loss: float) -> None:
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

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self._steps, "averages": self._averages}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._steps = state["steps"]
        for average, saved in zip(self._averages, state["averages"], strict=True):
            average.copy_(saved)


class ProgressBar(Callback):
    """Shows the steps, the epoch, the loss and the best epoch so far on a terminal."""

    def __init__(self, num_steps: int, num_epochs: float, *, visible: bool) -> None:
        self._bar = progress_bar(visible=visible)
        self._task = self._bar.add_task("steps", total=num_steps, note="")
        self._num_epochs = num_epochs

    def on_start(self, progress: Progress) -> None:
        self._bar.update(self._task, completed=progress.step)
        self._bar.start()

    def on_step(self, progress: Progress, loss: float) -> None:
        best = "" if progress.best_value is None else f", best {progress.best_value:.2f}"
        note = f"epoch {progress.epoch + 1}/{self._num_epochs:g}{best}, loss {progress.mean_loss():.4f}"
        self._bar.update(self._task, completed=progress.step, note=note)

    def on_end(self) -> None:
        self._bar.stop()
