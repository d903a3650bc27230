"""The metrics of a model on a data set, and the files of its predictions."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from elmo_tasks.files.atomic import OutputFile, atomic_write
from elmo_tasks.files.json_files import json_text
from elmo_tasks.files.paths import open_file_number
from elmo_tasks.models.model import TaskModel
from elmo_tasks.progress import progress_bar
from elmo_tasks.tasks import Task
from elmo_tasks.training.batching import BatchLoader

Sink = Callable[[int, dict[str, Any], dict[str, Any]], None]


def evaluate(
    model: TaskModel,
    loader: BatchLoader,
    accelerator: Accelerator,
    sink: Sink | None = None,
    *,
    choose_threshold: bool = False,
) -> dict[str, float]:
    """The metrics of a model on a data set with gold labels, among them the mean `loss` of an example.

    Only one batch of predictions is held at a time. Examples in `loader.without_gold` have no loss; if there are no
    others, neither has the data set.

    Arguments:
        sink: called in the main process with the row, the example and the prediction, in the order of the batches.
        choose_threshold: gives the model, if it has a threshold, the one that is best on this data, and scores with it.
    """
    training = model.training
    model.eval()
    metric = model.task.build_metric()
    threshold = model.threshold if choose_threshold else None
    with_probabilities = sink is not None or threshold is not None
    loss, count, without_loss = 0.0, 0, len(loader.without_gold)
    with torch.inference_mode(), progress_bar(visible=accelerator.is_main_process) as bar:
        task = bar.add_task("evaluation", total=len(loader.data), note="")
        for rows, batch in loader.once():
            found: list[tuple[int, dict[str, Any], dict[str, Any]]] = []
            if batch is not None:
                batch = batch.to(accelerator.device)
                with accelerator.autocast():
                    output = model(batch)
                    if loader.without_gold.isdisjoint(rows):
                        loss += model.loss(output, batch).item() * len(batch)
                predictions = model.decode(output, batch, probabilities=with_probabilities)
                found = list(zip(rows, batch.examples, predictions, strict=True))
            found = gather_object(found)  # of all processes
            metric.update([prediction for _, _, prediction in found], [example for _, example, _ in found])
            count += len(found)
            if sink and accelerator.is_main_process:
                for row, example, prediction in found:
                    sink(row, example, prediction)
            bar.update(task, completed=count)
    model.train(training)
    if threshold is not None:
        threshold.fill_(metric.choose_threshold())
    metrics, loss = metric.compute(), sum(gather_object([loss]))
    num_with_loss = count - without_loss
    if count and not num_with_loss:
        return metrics
    return {**metrics, "loss": loss / max(1, num_with_loss)}


@contextlib.contextmanager
def ordered_lines(path: str | Path | None) -> Iterator[Callable[[int, Any], None]]:
    """Yields a function that takes lines' numbers and values in any order; writes them in order, as JSON, atomically.

    The lines wait in a temporary file without a name. Only their positions are held in memory. Without a path, nothing
    is written.

    Raises:
        WriteError: the file cannot be written.
    """
    if path is None:
        yield lambda number, value: None
        return
    positions: dict[int, tuple[int, int]] = {}  # of each line its start and its length in bytes
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    has_room = open_file_number(path) is None and (path.is_file() or not path.exists())  # not /dev, or that of a pipe
    folder = path.parent if has_room else None
    with (
        tempfile.TemporaryFile(buffering=0, dir=folder) as file,
        io.BufferedRandom(OutputFile(file.fileno(), path, "rb+")) as lines,
    ):

        def add(number: int, value: Any) -> None:
            line = f"{json_text(value)}\n".encode()
            positions[number] = lines.tell(), len(line)
            lines.write(line)

        yield add
        with atomic_write(path) as target:
            for _, (start, length) in sorted(positions.items()):
                lines.seek(start)
                target.write(lines.read(length))


def pairs_to(write: Callable[[int, Any], None], task: Task | None = None) -> Sink:
    """Writes examples with their predictions, as `evaluate` gives them.

    Arguments:
        task: if it is given, only its columns of an example are written, and what its metric reads of a prediction.
            Probabilities and attention would take most of the room.
    """
    if task is None:
        return lambda row, example, prediction: write(row, {"example": example, "prediction": prediction})
    columns, field = [*task.features], task.predicted_field
    return lambda row, example, prediction: write(
        row, {"example": {name: example[name] for name in columns}, "prediction": {field: prediction[field]}}
    )
