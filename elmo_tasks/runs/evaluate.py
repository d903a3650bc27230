"""Evaluates trained runs on data with gold labels."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from elmo_tasks.config import Overrides
from elmo_tasks.data_readers.sources import DataSet, Source, source_name
from elmo_tasks.errors import RunError, UnknownLabelError, check_choice, counted, some_of
from elmo_tasks.files.installed_models import package_of
from elmo_tasks.files.json_files import read_records
from elmo_tasks.metrics.confusion import confusion_table, label_scores
from elmo_tasks.modules.devices import Device
from elmo_tasks.runs.experiment_data import read_examples
from elmo_tasks.runs.learned import Learned
from elmo_tasks.runs.load import Run, RunPaths, load_run, with_device
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.evaluation import Sink, ordered_lines, pairs_to
from elmo_tasks.training.evaluation import evaluate as evaluate_model
from elmo_tasks.training.processes import start_accelerator

logger = logging.getLogger(__name__)

_FEW = 0.2  # of a data set: fewer examples that were learned from may be short texts that occur everywhere
LearnedExamples = Literal["apart", "left out"]
"""What becomes of examples that a run has learned from: they are scored apart, or left out."""

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

    Examples that the run has learned from are scored apart, under `learned`, if they are a fifth of the data or more.
    If a cross-validation has scored the run, they count like the others, each with what the model of its fold predicts,
    which had not seen it; there is then no `loss`. Imported runs, and those of earlier versions, do not know what they
    have learned from.

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
    check_choice("unknown_labels", unknown_labels, get_args(UnknownLabels))
    run = load_run(path, overrides=with_device(device, overrides))
    task, by_row = run.reader.task, dict[int, list[tuple[str, str]]]()
    is_main = start_accelerator(run.config.trainer).is_main_process
    with ordered_lines(predictions if is_main else None) as write:
        to_file = pairs_to(write)

        def sink(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
            to_file(row, example, prediction)
            if confusion:
                labels = task.compared_labels(example), task.compared_labels(prediction)
                by_row[row] = list(zip(*labels, strict=True))

        metrics, apart = evaluate_run(
            run,
            data,
            sink=sink if predictions or confusion else None,
            batch_tokens=batch_tokens,
            unknown_labels=unknown_labels,
        )
    if not confusion:
        return metrics
    table = confusion_table(Counter(pair for row in by_row.keys() - apart for pair in by_row[row]))
    return {**metrics, "confusion": table, "label_scores": label_scores(table)}


class Evaluated(NamedTuple):
    """The metrics of a data set, and the rows of examples that were learned from, if these are not in the metrics."""

    metrics: dict[str, Any]
    apart: Sequence[int] = ()


def evaluate_run(
    run: Run,
    data: Source,
    *,
    sink: Sink | None = None,
    batch_tokens: int | None = None,
    unknown_labels: UnknownLabels = "error",
    learned: LearnedExamples = "apart",
) -> Evaluated:
    """The metrics of a loaded run on a data set; see `evaluate`.

    Arguments:
        sink: called in the main process with the row, the example and the prediction, in the order of the batches, also
            for examples that are scored apart.

    Raises:
        ElmoTasksError: the run does not know a label of the data; or all examples would be left out.
    """
    accelerator = start_accelerator(run.config.trainer)
    with accelerator.main_process_first():
        examples = read_examples(run.reader, data)
    known = Learned.read(run.folder.learned) if run.folder else None
    seen = known.seen(run.reader.task, examples) if known else []
    if known is None and isinstance(run.path, Path) and not package_of(run.path):
        text = "%s: does not say what it has learned from; if these examples are among that, the score is too high"
        logger.info(text, run.path)
    by_fold = _predictions_of_folds(run, examples.select(seen)) if seen and learned == "apart" else None
    name, number = source_name(data), f"{len(seen):,} of {counted(len(examples), 'example')}"
    settings: dict[str, Any] = {"batch_tokens": batch_tokens, "unknown_labels": unknown_labels, "source": data}
    if seen and by_fold is None and len(seen) < _FEW * len(examples):
        logger.info("%s: %s ask the same as training examples", name, number)
        seen = []
    if not seen:
        return Evaluated(evaluate_examples(run, examples, sink=sink, **settings))
    others = sorted({*range(len(examples))}.difference(seen))

    def evaluate_rows(rows: Sequence[int], sink: Sink | None = sink) -> dict[str, Any]:
        own_sink: Sink | None = (lambda row, *pair: sink(rows[row], *pair)) if sink else None
        return evaluate_examples(run, examples.select(rows), sink=own_sink, **settings)

    if by_fold is not None:
        logger.info("%s: %s were learned from; for them, the folds' models predict", name, number)
        metric = run.reader.task.build_metric()

        def add(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
            metric.update([prediction], [example])
            if sink:
                sink(row, example, prediction)

        for row, pair in zip(seen, by_fold, strict=True):
            add(row, *pair)
        if others:
            evaluate_rows(others, add)
        return Evaluated(metric.compute())
    if not others:
        if learned == "left out":
            raise RunError(f"{name}: all {len(seen):,} examples were learned from; expected others")
        logger.warning("%s: all %s were learned from: the score says nothing about other data", name, len(seen))
        return Evaluated(evaluate_rows(seen) | {"learned": {"examples": len(seen)}})
    if learned == "left out":
        logger.warning("%s: %s were learned from, and are left out", name, number)
        return Evaluated(evaluate_rows(others), seen)
    logger.warning("%s: %s were learned from, and are scored apart, as `learned`", name, number)
    own = {"examples": len(seen), **evaluate_rows(seen)}
    return Evaluated({**evaluate_rows(others), "learned": own}, seen)


def _predictions_of_folds(run: Run, examples: DataSet) -> list[tuple[dict[str, Any], dict[str, Any]]] | None:
    """Examples that a run has learned from, each with what the model of its fold predicts; None without them."""
    if not run.folder or not run.folder.cross_validation.is_file():
        return None
    task, file = run.reader.task, run.folder.validation_predictions
    pairs = read_records(file, dict[str, dict[str, Any]], "an example with its prediction")
    found = {task.key(pair["example"]): pair["prediction"] for pair in pairs}
    if any(task.key(example) not in found for example in examples):
        return None
    return [(example, found[task.key(example)]) for example in examples]


def evaluate_examples(
    run: Run,
    examples: DataSet,
    *,
    sink: Sink | None = None,
    batch_tokens: int | None = None,
    unknown_labels: UnknownLabels = "error",
    source: Source = "examples",
) -> dict[str, float]:
    """The metrics of a loaded run on examples, whatever it has learned from; see `evaluate_run`.

    Arguments:
        source: where they are from, for messages.
    """
    accelerator = start_accelerator(run.config.trainer)
    given = DataLoaderConfig(batch_tokens=batch_tokens, shuffle=False) if batch_tokens else None
    run.model.to(accelerator.device)
    unknown: dict[int, Any] = {}  # the gold labels that the run does not know, by row
    if unknown_labels == "count":
        for row, example in enumerate(examples):
            if labels := run.reader.task.unknown_labels(example, run.vocabulary):
                unknown[row] = labels
    if unknown:
        counts = Counter(label for labels in unknown.values() for label in labels)
        logger.warning(
            "%s: the run does not know some labels, which count as its errors: %s; the loss leaves out %d example(s)",
            source_name(source),
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
        raise run.reader.unknown_label(source, examples, error) from None
