"""The trainer of heads and biLMs: the loop, the optimizer step, and the state from which a run resumes.

An agenda says what comes next: a step, an evaluation or a checkpoint. That of a task goes by epochs, and is in
`task_training.py`; that of a pretraining goes by steps. A run that is killed and resumed ends with the same weights and
metrics, bit for bit, as one that was not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate.utils import gather_object
from torch import Tensor, nn

from elmo_tasks import hooks
from elmo_tasks.errors import BEGIN_AGAIN, ElmoTasksError, RunError, one_line
from elmo_tasks.files.json_files import append_line, keep_lines
from elmo_tasks.files.signals import DeferredSignals
from elmo_tasks.files.tensor_files import DAMAGED_STATE, write_state
from elmo_tasks.training.callbacks import Callback, Progress, ProgressBar
from elmo_tasks.training.optimizers import find_parameters
from elmo_tasks.training.processes import FromDevice, RunAccelerator
from elmo_tasks.training.state import (
    STATE_FILE,
    VERSION,
    random_state,
    read_training_state,
    seed_everything,
    set_random_state,
)
from elmo_tasks.training.trainer_config import BaseTrainerConfig

logger = logging.getLogger(__name__)


class Objective(nn.Module):
    """Computes a batch's mean loss in one call, as data-parallel wrappers need it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Any) -> Tensor:
        return self.model.loss(self.model(batch), batch)

    def state(self) -> Any:
        """What this process carries from one step into the next, as tensors and plain values."""

    def load_state(self, carried: Any) -> None:
        """Restores what `state` returned."""


@dataclasses.dataclass(frozen=True)
class Step:
    """Next comes an optimizer step: the parts of its batch, and their weights."""

    parts: Sequence[tuple[Any, float]]


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Next comes an evaluation, with a record.

    Attributes:
        ends_epoch: whether an epoch ends with it.
        is_last: whether the training ends with it; only where this is known before.
    """

    ends_epoch: bool = False
    is_last: bool = False


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Next, the state is saved from which the run can be resumed."""


class Agenda(Protocol):
    """What a training does, one thing after the other."""

    @property
    def total(self) -> int:
        """The optimizer steps of the whole run, for the learning rates."""

    def rest(self, trainer: Trainer) -> Iterator[Step | Evaluate | Checkpoint]:
        """Yields the remaining entries. The trainer completes each one and updates `trainer.progress` before it asks
        for the next. After `trainer.stop()`, the remaining steps are skipped.
        """


class HeldOut(Protocol):
    """What the model is evaluated on between steps."""

    def measure(self, trainer: Trainer, *, is_last: bool = False) -> dict[str, Any]:
        """The model's metrics."""

    def record(self, trainer: Trainer, metrics: dict[str, Any], seconds: float) -> tuple[dict[str, Any], float]:
        """Writes the parameters where they are to be kept.

        Returns:
            the record of the evaluation, which took this many seconds; JSON can hold it.
            the metric that the learning rates may follow.
        """


class Trainer:
    """Trains one model: `fit` makes all steps, evaluations and checkpoints.

    Ctrl-C during `fit` lets a step that is under way end, saves the state and raises `KeyboardInterrupt`. Other signals
    that end the process by an exception, as SIGTERM does in `elmo-tasks`, are treated alike. The state is not saved
    with several processes, whose steps may differ, nor while averaged parameters are evaluated.

    Attributes:
        progress: how far the training has come; always the same object.
        is_stopped: whether a callback has called `stop`.

    Arguments:
        objective: the model with its loss. Parameters without a gradient, such as a frozen biLM's, stay as they are.
        agenda: the training data as steps, and when the model is evaluated.
        records: the file of the evaluations' records, in the folder of the run. The state and curves are next to it.
        seed: of the random numbers of a training that begins. Each process adds its index, so that dropout differs
            between processes.
        resume: continues from the state in the folder of the run. If no state was saved, the training begins, with a
            warning.
        callbacks: called in addition to the progress bar, the hook `callback` and the callbacks of the config.

    Raises:
        ConfigError: a regular expression matches no parameter, or no parameter is trained in the first epoch.
        RunError: the state is damaged, of another model, of another number of processes, or of an earlier version.
    """

    def __init__(
        self,
        config: BaseTrainerConfig,
        objective: Objective,
        agenda: Agenda,
        records: Path,
        accelerator: RunAccelerator,
        *,
        seed: int,
        resume: bool,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.config = config
        self.objective = objective
        self.agenda = agenda
        self.records = records
        self.state_file = records.with_name(STATE_FILE)
        self.accelerator = accelerator
        self.progress = Progress()
        self.is_stopped = False
        objective.to(accelerator.device)
        self.parameters = {name: each for name, each in objective.model.named_parameters() if each.requires_grad}
        self._regularized = [
            (each, find_parameters(self.parameters, each.parameters, "trainer.regularizers"))
            for each in config.regularizers
        ]
        self._first_epochs = config.first_epochs(list(self.parameters))
        self.optimizer = config.optimizer.build(list(self.parameters.items()))
        self.schedule = config.learning_rate_scheduler.build(self.optimizer, agenda.total, config.higher_is_better)
        average = config.moving_average
        self.average = average.build(list(self.parameters.values())) if average else None
        self.loss = accelerator.prepare_model(objective)
        bar = ProgressBar(agenda.total, config.num_epochs, visible=accelerator.is_main_process)
        added = [make(accelerator, records.parent) for make in hooks.everything("callback")]
        self._callbacks = [*added, bar, *config.callbacks(), *callbacks]
        if self.average:
            self._callbacks.insert(0, self.average)
        self._clock = time.monotonic()
        self._held_out: HeldOut | None = None
        self._open_changes = 0  # while there are any, there is no state to save
        self._save_is_due = False
        self._signals = DeferredSignals(insistent=True)
        if resume and self.state_file.is_file():
            self._resume()
        else:
            if resume:
                logger.warning(
                    "%s: no state was saved there to resume from; the training starts again from step 0", records.parent
                )
            seed_everything(seed + accelerator.process_index)
        self._generators = random_state()  # with which `fit` begins

    def _resume(self) -> None:
        """Continues from the state in the folder of the run."""
        state = read_training_state(self.state_file, self.accelerator.num_processes)
        try:
            shapes = [parameter.shape for parameter in self.parameters.values()]
            if [parameter.shape for parameter in state["parameters"]] != shapes:
                raise ValueError("the parameters have other shapes")
            self.progress = Progress(**state["progress"])
            self.set_parameters(dict(zip(self.parameters, state["parameters"], strict=True)))
            self.optimizer.load_state_dict(state["optimizer"])
            self.schedule.scheduler.load_state_dict(state["schedule"])
            if self.average:
                self.average.load_state_dict(state["average"])
            own_process = state["processes"][self.accelerator.process_index]
            set_random_state(own_process["generators"])
            self.objective.load_state(own_process["carried"])
        except DAMAGED_STATE as error:
            raise RunError(
                f"{self.state_file}: damaged, or not of this run ({one_line(error)}); {BEGIN_AGAIN}"
            ) from error
        logger.info("resumed at step %d, epoch %d", self.progress.step, self.progress.epoch + 1)

    def fit(self, held_out: HeldOut) -> None:
        """Trains to the end. What has drawn random numbers since the trainer was made changes nothing.

        Raises:
            ElmoTasksError: the loss is not finite.
        """
        self._held_out = held_out
        set_random_state(self._generators)
        self.objective.model.train()
        with self._running():
            for entry in self.agenda.rest(self):
                if self._save_is_due:
                    self.checkpoint()
                match entry:
                    case Step(parts):
                        self.step(parts)
                    case Evaluate():
                        self._evaluate(held_out, entry)
                    case Checkpoint():
                        self.checkpoint()

    def stop(self) -> None:
        """Ends the training after the step or the evaluation under way; an epoch that has begun is still evaluated.

        A run that is resumed goes on, unless this is called again.
        """
        self.is_stopped = True

    def save(self) -> None:
        """Saves the state, from which the run can be resumed, after the step or the evaluation under way."""
        self._save_is_due = True

    def evaluate(self) -> dict[str, Any]:
        """The metrics of the model as it is now, with averaged parameters if there are any. Nothing is written."""
        assert self._held_out, "called by a callback, while the model is trained"
        with self.averaged():
            metrics = self._held_out.measure(self)
        self._clock = time.monotonic()
        return metrics

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Calls the callbacks before and after the block. If a signal ends it, saves the state."""
        if self.accelerator.is_main_process:
            keep_lines(self.records, self.progress.records)  # later ones are made again
        for callback in self._callbacks:
            callback.trainer = self
            callback.on_start(self.progress)
        self._clock = time.monotonic()
        try:
            with self._signals:
                try:
                    yield
                except (KeyboardInterrupt, SystemExit):
                    if not self._open_changes and self.accelerator.num_processes == 1:
                        self._signals.is_busy = True
                        self.checkpoint()
                        logger.info("saved the state of step %d", self.progress.step)
                    raise
        finally:
            for callback in self._callbacks:
                callback.on_end()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Within the block, and after an error in it, there is no state to save."""
        self._open_changes += 1
        yield
        self._open_changes -= 1

    def step(self, parts: Sequence[tuple[Any, float]]) -> float:
        """Makes one optimizer step on the weighted parts of a batch.

        Returns:
            the loss: the weighted sum of the parts' losses plus the penalties, averaged over all processes.

        Raises:
            ElmoTasksError: the loss is not finite.
        """
        with self._signals.busy(), self._changing():
            loss = self._update(parts)
            progress, now = self.progress, time.monotonic()
            if not math.isfinite(loss):
                raise ElmoTasksError(
                    f"the loss is {loss} at step {progress.step + 1}; "
                    "a lower trainer.optimizer.lr or a trainer.grad_norm may help"
                )
            progress.step += 1
            progress.recent_steps += 1
            progress.recent_loss += loss
            progress.seconds += now - self._clock
            progress.recent_seconds += now - self._clock
            self._clock = now
            for callback in self._callbacks:
                callback.on_step(progress, loss)
        return loss

    def _update(self, parts: Sequence[tuple[Any, float]]) -> float:
        """Computes the gradients and moves the parameters and the learning rates. Returns the loss."""
        self.optimizer.zero_grad()
        for name, epoch in self._first_epochs.items():  # the optimizer skips what has no gradient
            self.parameters[name].requires_grad_(self.progress.epoch + 1 >= epoch)
        total = torch.zeros((), device=self.accelerator.device)
        for batch, weight in parts[:-1]:
            with self.accelerator.no_sync(self.loss):
                loss = self.loss_of(batch) * weight
                self.accelerator.backward(loss)
            total += loss.detach()
        batch, weight = parts[-1]
        loss = self.loss_of(batch) * weight
        if self._regularized:
            loss = loss + self.penalty()
        # A device goes on with what follows while its loss is read: it need not wait for the next step's operations.
        own_loss = FromDevice(total + loss.detach())
        self.accelerator.backward(loss)
        if self.config.grad_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters.values(), self.config.grad_norm)
        if self.config.grad_clipping is not None:
            nn.utils.clip_grad_value_(self.parameters.values(), self.config.grad_clipping)
        self.optimizer.step()
        self.schedule.after_step()
        value = own_loss.read()
        if self.accelerator.num_processes > 1:
            value = self.accelerator.reduce(torch.tensor(value, device=self.accelerator.device), "mean").item()
        return value

    def loss_of(self, batch: Any) -> Tensor:
        """The mean loss of a batch, ()."""
        with self.accelerator.autocast():
            loss: Tensor = self.loss(batch.to(self.accelerator.device))
        return loss.float()

    def penalty(self) -> Tensor:
        """The regularizers' penalties on the parameters as they are."""
        penalties = [
            each.l1 * self.parameters[name].abs().sum() + each.l2 * self.parameters[name].square().sum()
            for each, names in self._regularized
            for name in names
        ]
        return torch.stack(penalties).sum()

    def _evaluate(self, held_out: HeldOut, entry: Evaluate) -> None:
        """Evaluates the model, and writes the record."""
        progress, began = self.progress, time.monotonic()
        with self.averaged():
            metrics = held_out.measure(self, is_last=entry.is_last)
            with self._changing():
                record, metric = held_out.record(self, metrics, time.monotonic() - began)
                if self.accelerator.is_main_process:
                    append_line(self.records, record)
                for callback in self._callbacks:
                    callback.on_epoch(progress, record)
                progress.records += 1
                progress.recent_steps, progress.recent_loss, progress.recent_seconds = 0, 0.0, 0.0
                if entry.ends_epoch:
                    progress.epoch += 1
                    self.schedule.after_epoch(metric)
        self._clock = time.monotonic()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Within the block the parameters have the values of their moving averages, if there are any."""
        if self.average is None:
            yield
            return
        with self._changing(), self.average.applied():
            yield

    def checkpoint(self) -> None:
        """Writes the state from which a trainer with `resume` continues."""
        self._save_is_due = False
        processes = gather_object([{"generators": random_state(), "carried": self.objective.state()}])
        if not self.accelerator.is_main_process:
            return
        state = {
            "version": VERSION,
            "progress": dataclasses.asdict(self.progress),
            "parameters": [parameter.detach() for parameter in self.parameters.values()],
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.scheduler.state_dict(),
            "average": self.average.state_dict() if self.average else None,
            "processes": processes,
        }
        write_state(self.state_file, state)

    @torch.no_grad()
    def set_parameters(self, values: Mapping[str, Tensor]) -> None:
        """Gives every trained parameter the value of its name."""
        for name, parameter in self.parameters.items():
            parameter.copy_(values[name])
