"""What a task's training adds to the trainer: its steps, and the validation that chooses the best epoch."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.models.model import TaskModel
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.callbacks import Progress
from elmo_tasks.training.evaluation import evaluate
from elmo_tasks.training.trainer import Trainer
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TaskSteps:
    """Optimizer steps on the batches of a loader."""

    loader: BatchLoader
    config: TrainerConfig
    evaluate_every: None = None

    @functools.cached_property
    def total(self) -> int:
        """The steps of all epochs, as if each had those of the first one. Later ones may have a few more or less."""
        return self.config.num_epochs * self.loader.num_steps(0, self.config.num_gradient_accumulation_steps)

    def rest_of_epoch(self, progress: Progress) -> Iterator[Sequence[tuple[Any, float]]]:
        batches_per_step = self.config.num_gradient_accumulation_steps
        return self.loader.steps(progress.epoch, batches_per_step, first=progress.recent_steps)


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

    def __call__(self, trainer: Trainer, *, last: bool) -> tuple[dict[str, Any], float]:
        begin, metrics = time.monotonic(), {}
        if self.loader:
            metrics = evaluate(self.model, self.loader, trainer.accelerator, choose_threshold=True)
        value = self.config.value_of(metrics) if metrics else None
        better = trainer.note_value(value, metrics.get("loss", math.nan))
        if better and trainer.accelerator.is_main_process:
            tensors = {name: each.detach() for name, each in trainer.parameters.items()}
            threshold = self.model.threshold
            tensors |= {} if threshold is None else {"threshold": threshold}
            write_tensors(self.best, tensors, epoch=str(trainer.progress.best_epoch))
        record = self._record(trainer, metrics, better, time.monotonic() - begin)
        return record, math.nan if value is None else value

    def _record(self, trainer: Trainer, metrics: dict[str, float], better: bool, evaluation: float) -> dict[str, Any]:
        """The line of `metrics.jsonl` for the epoch, which is logged too. `evaluation` took this many seconds."""
        progress = trainer.progress
        epoch, loss, seconds = progress.epoch + 1, progress.mean_loss(), progress.recent_seconds
        validation = f", validation loss {metrics['loss']:.4f}" if metrics else ""
        if metrics and self.config.metric_name != "loss":
            validation += f", {self.config.metric_name} {self.config.value_of(metrics):.2f}"
        validation += " (best)" if metrics and better else ""
        logger.info("epoch %d: training loss %.4f%s, %.0f s", epoch, loss, validation, seconds)
        transformer = self.model.embedder.transformer_weights()
        return {
            "epoch": epoch,
            "step": progress.step,
            "seconds": round(seconds + evaluation, 2),
            "training": {"loss": loss, "seconds": round(seconds, 2)},
            "validation": metrics,
            "learning_rate": [group["lr"] for group in trainer.optimizer.param_groups],
            "elmo": self.model.embedder.mix_weights(),
            **({"transformer": transformer} if transformer else {}),
            "best": better,
        }
