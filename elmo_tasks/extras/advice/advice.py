"""Warnings where a run is too short for a model to learn, or where its model has learned nothing."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import datasets

from elmo_tasks.config.packaged import packaged_configs
from elmo_tasks.errors import counted
from elmo_tasks.tasks.task import Task
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)

FEW_STEPS = 200


def few_steps(trainer: TrainerConfig, training: BatchLoader, num_steps: int) -> str | None:
    """What is wrong with a run of so few optimizer steps that its model will hardly learn; None if there are enough."""
    if num_steps >= FEW_STEPS:
        return None
    steps, examples = counted(num_steps, "optimizer step"), counted(len(training.data), "training example")
    remedy = _more_steps(trainer, training)
    return f"only {steps} in all, for {examples}, and a model needs a few hundred to learn; {remedy}"


def judge(
    scores: Mapping[str, float],
    task: Task,
    trainer: TrainerConfig,
    training: BatchLoader,
    validation: datasets.Dataset,
    num_steps: int,
) -> None:
    """Compares the best epoch with a model that has learned nothing, and warns if it is not better.

    Arguments:
        scores: those of the best epoch on the validation data.
        task: that of the model, which may score tags of its data's spans one by one.
        num_steps: the optimizer steps of the run.
    """
    metric = task.build_metric()
    score, floor = scores[metric.main], metric.floor(validation)
    result = f"validation {metric.main} {score:.2f} in the best epoch"
    if floor:
        result += f"; always giving the most frequent label has {floor:.2f}"
    if score > floor:
        logger.info("%s", result)
        return
    remedy = (
        "check that both files have the same kind of labels; more examples or steps, or another learning rate may help"
    )
    if num_steps < FEW_STEPS:
        remedy = _more_steps(trainer, training)
    logger.warning("%s: the model has learned nothing useful; %s", result, remedy)


def _more_steps(trainer: TrainerConfig, training: BatchLoader) -> str:
    """What to change for more optimizer steps."""
    task = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(training.task).__name__).lower()
    config = f"start from the config small/{task}, or " if f"small/{task}" in packaged_configs() else ""
    size = training.config.batch_size
    batches = f"data_loader.batch_size (now {size})" if size else "data_loader.batch_tokens"
    return f"{config}raise trainer.num_epochs (now {trainer.num_epochs}) or lower {batches}"
