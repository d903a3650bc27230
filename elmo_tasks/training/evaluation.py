"""Predictions for a whole data set and what the task's metric says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from elmo_tasks.models.model import TaskModel
from elmo_tasks.progress import progress_bar
from elmo_tasks.training.batching import BatchLoader

Sink = Callable[[dict[str, Any], dict[str, Any]], None]


def evaluate(
    model: TaskModel, loader: BatchLoader, accelerator: Accelerator, sink: Sink | None = None
) -> dict[str, float]:
    """The metrics of a model on a data set with gold labels, among them the mean `loss` of an example.

    Arguments:
        sink: called in the main process with each example and its prediction, in the order of the loader's `rows`.
    """
    training = model.training
    model.eval()
    metric = model.task.build_metric()
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    loss = 0.0
    with torch.inference_mode(), progress_bar(visible=accelerator.is_main_process) as bar:
        task = bar.add_task("evaluation", total=len(loader.data), note="")
        for batch in loader.once():
            batch = batch.to(accelerator.device)
            with accelerator.autocast():
                output = model(batch)
                loss += model.loss(output, batch).item() * len(batch)
            pairs.extend(zip(batch.examples, model.decode(output, batch, probabilities=sink is not None), strict=True))
            bar.update(task, advance=len(batch) * accelerator.num_processes)
    model.train(training)
    pairs = gather_object(pairs)
    metric.update([prediction for _, prediction in pairs], [example for example, _ in pairs])
    if sink and accelerator.is_main_process:
        for example, prediction in pairs:
            sink(example, prediction)
    return {**metric.compute(), "loss": sum(gather_object([loss])) / max(1, len(pairs))}
