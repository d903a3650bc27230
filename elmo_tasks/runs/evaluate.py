"""Evaluates trained runs on data with gold labels."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.config import Overrides
from elmo_tasks.data_readers.sources import Source, source_name
from elmo_tasks.errors import UnknownLabelError, some_of
from elmo_tasks.metrics.confusion import confusion_table, label_scores
from elmo_tasks.modules.devices import Device
from elmo_tasks.runs.experiment_data import read_examples
from elmo_tasks.runs.load import Run, RunPaths, load_run, with_device
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.evaluation import Sink, ordered_lines, pairs_to
from elmo_tasks.training.evaluation import evaluate as evaluate_model
from elmo_tasks.training.processes import start_accelerator

logger = logging.getLogger(__name__)

UnknownLabels = Literal["error", "count"]
"""What becomes of gold labels that a run does not know: the data is refused, or they count as errors of the run."""


def evaluate(
    path: RunPaths,
    data: Source,
    *,
    predictions: str | Path | None = None,
    confusion: bool = False,
    batch_tokens: int | None = None,
    unknown_labels: UnknownLabels = "error",
    device: Device | None = None,
    overrides: Overrides = (),
) -> dict[str, Any]:
    """A run's metrics on a data set.

    Arguments:
        path: the folder or archive of the run; of several, their ensemble is evaluated, see `load_run`.
        data: file or hub data set that the run's reader can read, or examples with the columns of the task.
        predictions: a file for each example with its prediction, one JSON object per line, in the data's order.
        confusion: also returns a `ConfusionTable` under `confusion`, and `LabelScores` under `label_scores`.
        batch_tokens: most tokens in a batch, see `DataLoaderConfig`; by default the run's limits.
        unknown_labels: `count` scores gold labels that the run does not know as its errors, as the official scorers
            do. They are named in a warning, and `loss` is the mean of the other examples; without any, it is left out.
        device: `auto` uses a GPU if there is one, `cuda` requires one; by default, the setting of the run's config.
        overrides: changes of the run's config, `{"key.path": value}` or `["key.path=value"]`.

    Raises:
        ElmoTasksError: the run does not know a label of the data, or predicts no labels for a `confusion`.
    """
    run = load_run(path, overrides=with_device(device, overrides))
    task, pairs = run.reader.task, Counter[tuple[str, str]]()
    is_main = start_accelerator(run.config.trainer).is_main_process
    with ordered_lines(predictions if is_main else None) as write:
        to_file = pairs_to(write)

        def sink(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
            to_file(row, example, prediction)
            if confusion:
                pairs.update(zip(task.compared_labels(example), task.compared_labels(prediction), strict=True))

        metrics = evaluate_run(
            run,
            data,
            sink=sink if predictions or confusion else None,
            batch_tokens=batch_tokens,
            unknown_labels=unknown_labels,
        )
    if not confusion:
        return metrics
    table = confusion_table(pairs)
    return {**metrics, "confusion": table, "label_scores": label_scores(table)}


def evaluate_run(
    run: Run,
    data: Source,
    *,
    sink: Sink | None = None,
    batch_tokens: int | None = None,
    unknown_labels: UnknownLabels = "error",
) -> dict[str, float]:
    """The metrics of a loaded run on a data set; see `evaluate`.

    Arguments:
        sink: called in the main process with the row, the example and the prediction, in the order of the batches.
    """
    accelerator = start_accelerator(run.config.trainer)
    given = DataLoaderConfig(batch_tokens=batch_tokens, shuffle=False) if batch_tokens else None
    run.model.to(accelerator.device)
    with accelerator.main_process_first():
        examples = read_examples(run.reader, data)
    unknown: dict[int, Any] = {}  # the gold labels that the run does not know, by row
    if unknown_labels == "count":
        for row, example in enumerate(examples):
            if labels := run.reader.task.unknown_labels(example, run.vocabulary):
                unknown[row] = labels
    if unknown:
        counts = Counter(label for labels in unknown.values() for label in labels)
        logger.warning(
            "%s: the run does not know some labels, which count as its errors: %s; the loss leaves out %d example(s)",
            source_name(data),
            some_of([f"{label!r} ({count})" for label, count in counts.most_common()], most=10),
            len(unknown),
        )
    loader = BatchLoader(
        given or run.config.evaluation_loader(),
        examples,
        run.reader.task,
        run.vocabulary,
        rank=accelerator.process_index,
        num_processes=accelerator.num_processes,
        without_gold=frozenset(unknown),
    )
    try:
        return evaluate_model(run.model, loader, accelerator, sink)
    except UnknownLabelError as error:
        raise run.reader.unknown_label(data, examples, error) from None
