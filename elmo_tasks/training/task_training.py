"""What a task's training adds to the trainer: its agenda, and the validation that chooses the best epoch."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.models.model import TaskModel
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.evaluation import evaluate
from elmo_tasks.training.trainer import Checkpoint, Evaluate, Step, Trainer
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TaskAgenda:
    """The batches of a loader, epoch by epoch; each ends with an evaluation and a checkpoint.

    Arguments:
        has_steps: False for a model with nothing to train: it has only the evaluation and the checkpoint of one epoch.
    """

    loader: BatchLoader
    config: TrainerConfig
    has_steps: bool = True

    @functools.cached_property
    def total(self) -> int:
        """The steps of all epochs, as if each had those of the first one. Later ones may have a few more or less."""
        steps = self.loader.num_steps(0, self.config.num_gradient_accumulation_steps) if self.has_steps else 0
        return self.config.num_epochs * steps

    def rest(self, trainer: Trainer) -> Iterator[Step | Evaluate | Checkpoint]:
        progress, batches_per_step = trainer.progress, self.config.num_gradient_accumulation_steps
        num_epochs = self.config.num_epochs if self.has_steps else 1
        while progress.epoch < num_epochs and not trainer.is_stopped:
            steps = self.loader.steps(progress.epoch, batches_per_step, first=progress.recent_steps)
            for batches in steps if self.has_steps else ():
                yield Step(batches)
                if self.config.saves_after(progress.step):
                    yield Checkpoint()
                if trainer.is_stopped:
                    break
            yield Evaluate(ends_epoch=True)
            yield Checkpoint()


@dataclasses.dataclass(frozen=True)
class Validation:
    """Evaluates an epoch on the validation data, which also chooses a threshold for models that have one.

    Writes the trained parameters and the threshold if the epoch is the best one so far. Without validation data, every
    epoch is the best one so far, its record has no scores, and the threshold stays as it is.
    """

    config: TrainerConfig
    model: TaskModel[Any, Any]
    loader: BatchLoader | None
    best: Path  # the file of the best epoch's parameters and threshold

    def measure(self, trainer: Trainer, *, is_last: bool = False) -> dict[str, Any]:
        return evaluate(self.model, self.loader, trainer.accelerator, choose_threshold=True) if self.loader else {}

    def record(self, trainer: Trainer, metrics: dict[str, Any], seconds: float) -> tuple[dict[str, Any], float]:
        progress = trainer.progress
        value = self.config.value_of(metrics) if metrics else None
        loss = metrics.get("loss", math.nan)
        better = progress.note_value(value, loss, higher_is_better=self.config.higher_is_better)
        if better and trainer.accelerator.is_main_process:
            tensors = {name: each.detach() for name, each in trainer.parameters.items()}
            if (threshold := self.model.threshold) is not None:
                tensors["threshold"] = threshold
            write_tensors(self.best, tensors, epoch=str(progress.best_epoch))
        epoch, training_loss, training_seconds = progress.epoch + 1, progress.mean_loss(), progress.recent_seconds
        validation = ""
        if metrics:
            validation = f", validation loss {metrics['loss']:.4f}"
            if self.config.metric_name != "loss":
                validation += f", {self.config.metric_name} {value:.2f}"
            if better:
                validation += " (best)"
        training = f"training loss {training_loss:.4f}" if progress.recent_steps else "no training steps"
        logger.info("epoch %d: %s%s, %.0f s", epoch, training, validation, training_seconds)
        transformer = self.model.embedder.transformer_weights()
        record = {
            "epoch": epoch,
            "step": progress.step,
            "seconds": round(training_seconds + seconds, 2),
            "training": {"loss": training_loss, "seconds": round(training_seconds, 2)},
            "validation": metrics,
            "learning_rate": [group["lr"] for group in trainer.optimizer.param_groups],
            "elmo": self.model.embedder.mix_weights(),
            **({"transformer": transformer} if transformer else {}),
            "best": better,
        }
        return record, math.nan if value is None else value
