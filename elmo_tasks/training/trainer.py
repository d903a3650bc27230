"""The trainer of heads and biLMs: the loop, the optimizer step, and the state from which a run resumes.

A run that is killed and resumed ends with the same weights and metrics, bit for bit, as one that was not.
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

from elmo_tasks.errors import ElmoTasksError, RunError, one_line
from elmo_tasks.files.json_lines import append_line, keep_lines
from elmo_tasks.files.signals import DeferredSignals
from elmo_tasks.files.tensor_files import BEGIN_AGAIN, DAMAGED_STATE, write_state
from elmo_tasks.training.callbacks import Callback, Progress, ProgressBar, Trackers
from elmo_tasks.training.optimizers import find_parameters
from elmo_tasks.training.processes import FromDevice, RunAccelerator
from elmo_tasks.training.random_state import random_state, seed_everything, set_random_state
from elmo_tasks.training.trainer_config import BaseTrainerConfig
from elmo_tasks.training.training_state import STATE_FILE, VERSION, TrainingState, check_like, read_training_state

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


class TrainingSteps(Protocol):
    """The training data as optimizer steps."""

    @property
    def total(self) -> int:
        """The optimizer steps of the whole run, for the schedule."""

    @property
    def evaluate_every(self) -> int | None:
        """After how many steps the model is evaluated, and after the last of all.

        None: after each epoch, until `num_epochs` or the patience of the config ends the training.
        """

    def rest_of_epoch(self, progress: Progress) -> Iterator[Sequence[tuple[Any, float]]]:
        """The steps of the epoch under way that have not been made: the batches of each, and their weights."""


class Evaluation(Protocol):
    """Evaluates the model between steps, and writes its parameters where they are to be kept."""

    def __call__(self, trainer: Trainer, *, last: bool) -> tuple[dict[str, Any], float]:
        """Returns the record of the evaluation, which JSON can hold, and the metric that the schedule may follow.

        Arguments:
            last: whether the training ends here. It is only known where evaluations come after a number of steps.
        """


class Trainer:
    """Trains one model: `fit` makes all steps, evaluations and checkpoints.

    Ctrl-C during `fit` lets a step that is under way end, saves the state and raises `KeyboardInterrupt`. Other signals
    that end the process by an exception, as SIGTERM does in `elmo-tasks`, are treated alike. The state is not saved
    with several processes, whose steps may differ, nor while averaged parameters are evaluated.

    Attributes:
        progress: how far the training has come; always the same object.

    Arguments:
        objective: the model with its loss. Parameters without a gradient, such as a frozen biLM's, stay as they are.
        records: the file of the evaluations' records, in the folder of the run. The state and curves are next to it.
        steps: the training data.
        seed: of the random numbers of a training that begins. Each process adds its index and drops other units.
        resume: continues from the state in the folder of the run. If no state was saved, the training begins, with a
            warning.
        callbacks: called in addition to the progress bar and the trackers.

    Raises:
        ConfigError: a regular expression matches no parameter, or no parameter is trained in the first epoch.
        RunError: the state is damaged, of another model, of another number of processes, or of an earlier version.
    """

    def __init__(
        self,
        config: BaseTrainerConfig,
        objective: Objective,
        steps: TrainingSteps,
        records: Path,
        accelerator: RunAccelerator,
        *,
        seed: int,
        resume: bool,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.config = config
        self.objective = objective
        self.records = records
        self.state_file = records.with_name(STATE_FILE)
        self.accelerator = accelerator
        self.steps = steps
        self.progress = Progress()
        objective.to(accelerator.device)
        self.parameters = {name: each for name, each in objective.model.named_parameters() if each.requires_grad}
        self._regularized = [
            (each, find_parameters(self.parameters, each.parameters, "trainer.regularizers"))
            for each in config.regularizers
        ]
        self._first_epochs = config.first_epochs(list(self.parameters))
        self.optimizer = config.optimizer.build(list(self.parameters.items()))
        self.schedule = config.learning_rate_scheduler.build(self.optimizer, steps.total, config.higher_is_better)
        average = config.moving_average
        self.average = average.build(list(self.parameters.values())) if average else None
        self.loss = accelerator.prepare_model(objective)
        bar = ProgressBar(steps.total, config.num_epochs, visible=accelerator.is_main_process)
        self._callbacks = [Trackers(accelerator, records.parent), bar, *callbacks]
        self._clock = time.monotonic()
        self._is_whole = False  # there is a state that `save` could write
        self._signals = DeferredSignals(insistent=True)
        self._start(seed, resume=resume)
        self._generators = random_state()  # with which `fit` begins

    def _start(self, seed: int, *, resume: bool) -> None:
        """Sets the state of a training that begins, or the one saved."""
        path = self.state_file
        if not (resume and path.is_file()):
            if resume:
                logger.warning(
                    "%s: no state was saved there to resume from; the training starts again from step 0", path.parent
                )
            seed_everything(seed + self.accelerator.process_index)
            return
        state = read_training_state(path, self.accelerator.num_processes)
        try:
            self._set_state(state)
        except DAMAGED_STATE as error:
            raise RunError(f"{path}: damaged, or not of this run ({one_line(error)}); {BEGIN_AGAIN}") from error
        logger.info("resumed at step %d, epoch %d", self.progress.step, self.progress.epoch + 1)

    def _set_state(self, state: TrainingState) -> None:
        """Continues from a state; raises one of `DAMAGED_STATE` if it does not fit."""
        state.check_shapes([parameter.shape for parameter in self.parameters.values()])
        self.progress = state.progress
        self.set_parameters(dict(zip(self.parameters, state.parameters, strict=True)))
        self.optimizer.load_state_dict(state.optimizer)
        for group in self.optimizer.param_groups:
            check_like(self.optimizer.defaults, group)
        for parameter, values in self.optimizer.state.items():
            for name, value in values.items():
                if isinstance(value, Tensor) and value.ndim and value.shape != parameter.shape:
                    raise ValueError(f"the optimizer's {name} has another shape than its parameter")
        own_schedule = self.schedule.scheduler.state_dict()
        self.schedule.scheduler.load_state_dict(state.schedule)
        check_like(own_schedule, self.schedule.scheduler.state_dict())
        if self.average and state.average:
            self.average.load_state_dict(state.average)
        own_process = state.processes[self.accelerator.process_index]
        set_random_state(own_process.generators)
        self.objective.load_state(own_process.carried)

    def fit(self, evaluation: Evaluation, *, evaluate_first: bool = False) -> None:
        """Trains to the end. What has drawn random numbers since the trainer was made changes nothing.

        Arguments:
            evaluate_first: also evaluates before the first step.

        Raises:
            ElmoTasksError: the loss is not finite.
        """
        set_random_state(self._generators)
        self.objective.model.train()
        with self:
            if evaluate_first and self.progress.records == 0:
                self._evaluate(evaluation)
                self.save()
            if self._is_due(self.steps.evaluate_every) and self.progress.recent_steps and not self.is_finished():
                self._evaluate(evaluation)  # a signal ended the training before this evaluation, or within it
            while not self.is_finished():
                for batches in self.steps.rest_of_epoch(self.progress):
                    self.step(batches)
                    if self._is_due(self.steps.evaluate_every) and not self.is_finished():
                        self._evaluate(evaluation)
                    if self._is_due(self.config.checkpoint_every_steps):
                        self.save()
                self._end_epoch(evaluation)
            if self.steps.evaluate_every:
                self.save()  # before the last record, which a run that is resumed here writes again
                self._evaluate(evaluation, last=True)

    def is_finished(self) -> bool:
        """Whether all steps are made, or all epochs, or `patience` has ended the training."""
        progress, config = self.progress, self.config
        if self.steps.evaluate_every:
            return progress.step >= self.steps.total
        return (
            progress.epoch >= config.num_epochs
            or progress.epochs_without_progress() >= config.most_epochs_without_progress
        )

    def _is_due(self, every: int | None) -> bool:
        return every is not None and self.progress.step % every == 0

    def _end_epoch(self, evaluation: Evaluation) -> None:
        if not self.steps.evaluate_every:
            metric = self._evaluate(evaluation)
            self.progress.epoch += 1
            self.schedule.after_epoch(metric)
            self.save()
        elif not self.is_finished():
            self.progress.epoch += 1

    def _evaluate(self, evaluation: Evaluation, *, last: bool = False) -> float:
        with self.averaged():
            record, metric = evaluation(self, last=last)
            self.record(record)
        return metric

    def __enter__(self) -> Trainer:
        self._signals.__enter__()
        if self.accelerator.is_main_process:
            keep_lines(self.records, self.progress.records)  # later ones are made again
        for callback in self._callbacks:
            callback.on_start(self.progress)
        self._clock = time.monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        is_ended = kind is not None and issubclass(kind, (KeyboardInterrupt, SystemExit))
        try:
            if is_ended and self._is_whole and self.accelerator.num_processes == 1:
                self._signals.is_busy = True
                self.save()
                logger.info("saved the state of step %d", self.progress.step)
        finally:
            self._signals.__exit__()
            for callback in self._callbacks:
                callback.on_end()

    def step(self, parts: Sequence[tuple[Any, float]]) -> float:
        """Makes one optimizer step on the weighted parts of a batch.

        Returns:
            the loss: the weighted sum of the parts' losses plus the penalties, averaged over all processes.

        Raises:
            ElmoTasksError: the loss is not finite.
        """
        self._is_whole = False
        with self._signals.busy():
            loss = self._step(parts)
            self._is_whole = True
        return loss

    def _step(self, parts: Sequence[tuple[Any, float]]) -> float:
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
        if self.average:
            self.average.update()
        value = own_loss.read()
        if self.accelerator.num_processes > 1:
            value = self.accelerator.reduce(torch.tensor(value, device=self.accelerator.device), "mean").item()
        if not math.isfinite(value):
            raise ElmoTasksError(
                f"the loss is {value} at step {self.progress.step + 1}; "
                "a lower trainer.optimizer.lr or a trainer.grad_norm may help"
            )
        self._advance(value)
        return value

    def loss_of(self, batch: Any) -> Tensor:
        """The mean loss of a batch, ()."""
        with self.accelerator.autocast():
            loss: Tensor = self.loss(batch.to(self.accelerator.device))
        return loss.float()

    def _advance(self, loss: float) -> None:
        now, progress = time.monotonic(), self.progress
        progress.step += 1
        progress.recent_steps += 1
        progress.recent_loss += loss
        progress.seconds += now - self._clock
        progress.recent_seconds += now - self._clock
        self._clock = now
        for callback in self._callbacks:
            callback.on_step(progress, loss)

    def penalty(self) -> Tensor:
        """The regularizers' penalties on the parameters as they are."""
        penalties = [
            each.l1 * self.parameters[name].abs().sum() + each.l2 * self.parameters[name].square().sum()
            for each, names in self._regularized
            for name in names
        ]
        return torch.stack(penalties).sum()

    def note_value(self, value: float | None, loss: float) -> bool:
        """Like `Progress.note_value`, for a validation metric; the evaluation's record must follow."""
        self._is_whole = False
        return self.progress.note_value(value, loss, higher_is_better=self.config.higher_is_better)

    def record(self, record: Mapping[str, Any]) -> None:
        """Writes the record of an evaluation, and restarts the counts since the last record."""
        self._is_whole = False
        progress = self.progress
        if self.accelerator.is_main_process:
            append_line(self.records, record)
        for callback in self._callbacks:
            callback.on_epoch(progress, record)
        progress.records += 1
        progress.recent_steps, progress.recent_loss, progress.recent_seconds = 0, 0.0, 0.0
        self._clock = time.monotonic()

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Within the block the parameters have the values of their moving averages, if there are any."""
        if self.average is None:
            yield
            return
        self._is_whole = False  # until the next step
        with self.average.applied():
            yield

    def save(self) -> None:
        """Writes the state from which a trainer with `resume` continues."""
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
        self._is_whole = True

    @torch.no_grad()
    def set_parameters(self, values: Mapping[str, Tensor]) -> None:
        """Gives every trained parameter the value of its name."""
        for name, parameter in self.parameters.items():
            parameter.copy_(values[name])
