"""The training loop that all heads share.

    train -> for each epoch: step, step, ... -> validate -> keep the best -> stop early or go on

A run that is killed and resumed ends with the same weights and metrics, bit for bit, as one that was not: the state
holds the parameters, the optimizer, the schedule, the averages, every generator of random numbers and the place in the
data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from pydantic import Field
from torch import Tensor, nn

from elmo_tasks.config import Config
from elmo_tasks.errors import ConfigError, ElmoTasksError, RunError
from elmo_tasks.models.model import TaskModel
from elmo_tasks.progress import progress_bar
from elmo_tasks.runs import RunFolder, read_record, read_state, read_tensors, write_state, write_tensors
from elmo_tasks.tasks import Batch
from elmo_tasks.training.averaging import MovingAverageConfig
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.evaluation import evaluate
from elmo_tasks.training.optimizers import Adam, OptimizerConfig, find_parameters
from elmo_tasks.training.random_state import random_state, set_random_state
from elmo_tasks.training.reporting import Report
from elmo_tasks.training.schedules import Constant, SchedulerConfig

logger = logging.getLogger(__name__)


class Regularizer(Config):
    """A penalty on the parameters whose names a regular expression finds, added to the loss.

    For ELMo's mix, l2 is the paper's lambda (Peters et al. 2018, section 3.2): lambda times the sum of w squared.
    """

    parameters: str = Field(description="regular expression, searched in the parameters' names")
    l1: Annotated[float, Field(ge=0)] = Field(0.0, description="times the sum of absolute values")
    l2: Annotated[float, Field(ge=0)] = Field(0.0, description="times the sum of squares")


class TrainerConfig(Config):
    """How a model is trained. The names are AllenNLP's."""

    num_epochs: Annotated[int, Field(ge=1)] = Field(description="most epochs")
    patience: Annotated[int, Field(ge=1)] | None = Field(
        None, description="stops after this many epochs without a better validation metric"
    )
    validation_metric: Annotated[str, Field(pattern=r"^[+-].+")] = Field(
        description="chooses the best epoch; '+' before the name where higher is better, '-' where lower is"
    )
    optimizer: OptimizerConfig = Adam()
    learning_rate_scheduler: SchedulerConfig = Constant()
    grad_norm: Annotated[float, Field(gt=0)] | None = Field(
        None, description="scales the gradients of all parameters down to this norm"
    )
    grad_clipping: Annotated[float, Field(gt=0)] | None = Field(
        None, description="limits each value of the gradients to this size"
    )
    num_gradient_accumulation_steps: Annotated[int, Field(ge=1)] = Field(1, description="batches to an optimizer step")
    moving_average: MovingAverageConfig | None = Field(None, description="evaluates and saves averaged parameters")
    regularizers: tuple[Regularizer, ...] = ()
    device: Literal["auto", "cpu"] = Field("auto", description="'auto' takes a GPU where there is one")
    precision: Literal["float32", "bfloat16"] = Field("float32", description="of the products in training")
    checkpoint_every_steps: Annotated[int, Field(ge=1)] | None = Field(
        None, description="saves the state from which to resume this often, beside each epoch's end"
    )

    def accelerator(self) -> Accelerator:
        return Accelerator(cpu=self.device == "cpu", mixed_precision="bf16" if self.precision == "bfloat16" else "no")


@dataclasses.dataclass
class Progress:
    """How far a run has come; with the tensors beside it in the state file, all that resuming needs."""

    epoch: int = 0  # epochs finished
    step: int = 0  # optimizer steps made
    step_in_epoch: int = 0
    loss_sum: float = 0.0  # over the steps of the epoch under way
    best_epoch: int | None = None
    best_value: float | None = None
    stopped: bool = False

    def is_better(self, value: float, higher_is_better: bool) -> bool:
        if self.best_value is None:
            return not math.isnan(value)
        return value > self.best_value if higher_is_better else value < self.best_value


class _Loss(nn.Module):
    """From a batch to its mean loss in one call, as data-parallel wrappers want it."""

    def __init__(self, model: TaskModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Tensor:
        return self.model.loss(self.model(batch), batch)


class Trainer:
    """Trains one model.

    Arguments:
        model: the model; its parameters that want no gradient, a frozen biLM's among them, stay as they are.
        training: batches to learn from.
        validation: batches that choose the best epoch.
        folder: where the run is written.
        accelerator: device, precision and the processes that share the work.

    Raises:
        ConfigError: the model has no such validation metric, or no parameters that a regular expression should find.
    """

    def __init__(
        self,
        config: TrainerConfig,
        model: TaskModel,
        training: BatchLoader,
        validation: BatchLoader,
        folder: RunFolder,
        accelerator: Accelerator,
    ) -> None:
        self.config = config
        self.model = model
        self.training = training
        self.validation = validation
        self.folder = folder
        self.accelerator = accelerator
        self.progress = Progress()
        self.higher_is_better = config.validation_metric[0] == "+"
        self.metric_name = config.validation_metric[1:]
        known = {**model.task.build_metric().compute(), "loss": 0.0}
        if self.metric_name not in known and self.metric_name.partition("/")[0] not in known:
            raise _unknown_metric(self.metric_name, known)

        model.to(accelerator.device)
        named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.regularized = _regularized(config.regularizers, dict(named))
        self.optimizer = config.optimizer.build(named)
        self.steps_per_epoch = training.num_steps(0, config.num_gradient_accumulation_steps)
        num_steps = config.num_epochs * self.steps_per_epoch
        self.schedule = config.learning_rate_scheduler.build(self.optimizer, num_steps, self.higher_is_better)
        self.average = config.moving_average.build(self.parameters) if config.moving_average else None
        self.loss = accelerator.prepare_model(_Loss(model))

    def train(self) -> dict[str, Any]:
        """Trains to the end, from wherever the run has come, and leaves the model with the best epoch's parameters.

        Returns:
            the best epoch's record, as in `metrics.jsonl`.

        Raises:
            ElmoTasksError: the loss is no longer finite, or the validation data has not the label of the metric.
        """
        main = self.accelerator.is_main_process
        report = Report(self.folder, epochs=self.progress.epoch, step=self.progress.step) if main else None
        with progress_bar(visible=main) as bar:
            epochs = bar.add_task("epochs", total=self.config.num_epochs, completed=self.progress.epoch, note="")
            while not self.progress.stopped and self.progress.epoch < self.config.num_epochs:
                record = self._epoch(bar)
                if report:
                    report.epoch(record)
                self.save()
                bar.update(epochs, completed=self.progress.epoch, note=self._best_note())
        if report:
            report.close()
        return self._finish()

    def _epoch(self, bar: Any) -> dict[str, Any]:
        progress, started = self.progress, time.monotonic()
        self.model.train()
        steps = bar.add_task(f"epoch {progress.epoch + 1}", total=self.steps_per_epoch, note="")
        accumulation = self.config.num_gradient_accumulation_steps
        for parts in self.training.steps(progress.epoch, accumulation, first=progress.step_in_epoch):
            progress.loss_sum += self.step(parts)
            progress.step += 1
            progress.step_in_epoch += 1
            every = self.config.checkpoint_every_steps
            if every and progress.step % every == 0 and progress.step_in_epoch < self.steps_per_epoch:
                self.save()
            note = f"loss {progress.loss_sum / progress.step_in_epoch:.4f}"
            bar.update(steps, completed=progress.step_in_epoch, note=note)
        bar.remove_task(steps)
        return self._validate(time.monotonic() - started)

    def step(self, parts: Sequence[tuple[Batch, float]]) -> float:
        """Makes one optimizer step on the weighted parts of a batch.

        Returns:
            the loss: the mean over all examples of all processes, and the regularizers' penalties.
        """
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.accelerator.device)
        for index, (batch, weight) in enumerate(parts):
            last = index == len(parts) - 1
            with contextlib.nullcontext() if last else self.accelerator.no_sync(self.loss):
                loss = self.loss(batch.to(self.accelerator.device)) * weight
                if last and self.regularized:
                    loss = loss + self._penalty()
                self.accelerator.backward(loss)
            total += loss.detach()
        self._clip()
        self.optimizer.step()
        self.schedule.after_step()
        if self.average:
            self.average.update()
        mean: Tensor = self.accelerator.reduce(total, "mean")
        if not math.isfinite(value := mean.item()):
            raise ElmoTasksError(
                f"the loss is {value} at step {self.progress.step + 1}; "
                "a lower trainer.optimizer.lr or a trainer.grad_norm may help"
            )
        return value

    def _penalty(self) -> Tensor:
        penalties = []
        for regularizer, parameters in self.regularized:
            for parameter in parameters:
                penalties.append(regularizer.l1 * parameter.abs().sum() + regularizer.l2 * parameter.square().sum())
        return torch.stack(penalties).sum()

    def _clip(self) -> None:
        if self.config.grad_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.config.grad_norm)
        if self.config.grad_clipping is not None:
            nn.utils.clip_grad_value_(self.parameters, self.config.grad_clipping)

    def _validate(self, seconds: float) -> dict[str, Any]:
        """Ends an epoch: its record, the best parameters kept, the decision to stop."""
        progress, config = self.progress, self.config
        rates = [group["lr"] for group in self.optimizer.param_groups]
        with self.average.applied() if self.average else contextlib.nullcontext():
            metrics = evaluate(self.model, self.validation, self.accelerator)
            if self.metric_name not in metrics:
                raise _unknown_metric(self.metric_name, metrics)
            value = metrics[self.metric_name]
            better = progress.is_better(value, self.higher_is_better)
            if better:
                progress.best_epoch, progress.best_value = progress.epoch + 1, value
                self._save_best()
            loss = progress.loss_sum / max(1, progress.step_in_epoch)
            record = {
                "epoch": progress.epoch + 1,
                "step": progress.step,
                "training": {"loss": loss, "seconds": round(seconds, 2)},
                "validation": metrics,
                "learning_rate": rates,
                "elmo": self.model.embedder.mix_weights(),
                "best": better,
            }
        self.schedule.after_epoch(value)
        progress.epoch += 1
        progress.step_in_epoch, progress.loss_sum = 0, 0.0
        since_best = progress.epoch - (progress.best_epoch or 0)
        progress.stopped = config.patience is not None and since_best >= config.patience
        logger.info(
            "epoch %d: training loss %.4f, validation %s %.2f%s, %.0f s",
            progress.epoch,
            loss,
            self.metric_name,
            value,
            " (best)" if better else "",
            seconds,
        )
        return record

    def _best_note(self) -> str:
        if self.progress.best_value is None:
            return ""
        return f"best {self.metric_name} {self.progress.best_value:.2f} in epoch {self.progress.best_epoch}"

    def _save_best(self) -> None:
        if self.accelerator.is_main_process:
            tensors = {name: value.detach() for name, value in zip(self.names, self.parameters, strict=True)}
            write_tensors(self.folder.model, tensors)

    def save(self) -> None:
        """Writes the state from which `resume` goes on."""
        generators = gather_object([random_state()])
        if not self.accelerator.is_main_process:
            return
        state = {
            "progress": dataclasses.asdict(self.progress),
            "parameters": [parameter.detach() for parameter in self.parameters],
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "average": self.average.state_dict() if self.average else None,
            "generators": generators,
        }
        write_state(self.folder.training_state, state)

    def resume(self) -> None:
        """Takes up the state that the run's folder holds.

        Raises:
            RunError: the state is damaged, or of another number of processes.
        """
        state = read_state(self.folder.training_state)
        if len(state["generators"]) != self.accelerator.num_processes:
            raise RunError(
                f"{self.folder.training_state}: saved by {len(state['generators'])} processes, resumed by "
                f"{self.accelerator.num_processes}; wanted the same number"
            )
        self.progress = Progress(**state["progress"])
        with torch.no_grad():
            for parameter, saved in zip(self.parameters, state["parameters"], strict=True):
                parameter.copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        if self.average:
            self.average.load_state_dict(state["average"])
        set_random_state(state["generators"][self.accelerator.process_index])
        logger.info("resumed at step %d, epoch %d", self.progress.step, self.progress.epoch + 1)

    def _finish(self) -> dict[str, Any]:
        self.accelerator.wait_for_everyone()
        if self.progress.best_epoch is None:
            raise ElmoTasksError(f"no epoch had a value of {self.metric_name!r} that is a number; nothing was saved")
        best = read_tensors(self.folder.model)
        with torch.no_grad():
            for name, parameter in zip(self.names, self.parameters, strict=True):
                parameter.copy_(best[name])
        return read_record(self.folder.epochs, self.progress.best_epoch)


def _unknown_metric(name: str, known: Iterable[str]) -> ConfigError:
    return ConfigError(f"trainer.validation_metric: no metric {name!r}; there are {', '.join(sorted(known))}")


def _regularized(
    regularizers: Sequence[Regularizer], named: dict[str, nn.Parameter]
) -> list[tuple[Regularizer, list[nn.Parameter]]]:
    key = "trainer.regularizers"
    return [
        (regularizer, [named[name] for name in find_parameters(named, regularizer.parameters, key)])
        for regularizer in regularizers
    ]
