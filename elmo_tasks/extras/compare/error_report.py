"""What a system gets wrong: kinds of errors, confused labels and the worst examples.

Everything is counted as the task's scorer counts, so that the kinds add up to its scores.

# K sums of the task's metric
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from elmo_tasks.config import Overrides
from elmo_tasks.data_readers.sources import Source
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.compare.mention_errors import mention_kinds
from elmo_tasks.extras.compare.reading_errors import KINDS as READING_KINDS
from elmo_tasks.extras.compare.reading_errors import UNANSWERABLE, answer_kind
from elmo_tasks.extras.compare.significance import equal_below, unit_gains
from elmo_tasks.extras.compare.span_errors import KINDS as SPAN_KINDS
from elmo_tasks.extras.compare.span_errors import align, spans_of
from elmo_tasks.extras.compare.systems import Predictions, read_predictions
from elmo_tasks.metrics import Accuracy, CoreferenceScores, LabelSetF1, Metric, SpanF1, Squad2Scores, SquadScores, SrlF1
from elmo_tasks.metrics.confusion import Confusion, ConfusionTable
from elmo_tasks.runs.evaluate import UnknownLabels
from elmo_tasks.tasks import Task


@dataclasses.dataclass(frozen=True)
class WorstExample:
    """An example with gold labels and its prediction. `loss`: how much higher the score would be if it were right."""

    loss: float
    example: dict[str, Any]
    prediction: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class ErrorReport:
    """The result of `errors`.

    Arguments:
        metric: the name of the task's main score.
        scores: of the whole data, by the task's metric.
        counted: what `kinds` counts, such as spans.
        kinds: how many are right, and how many have each kind of error.
        confusion: which label is taken for which, None if the task does not predict labels.
        worst: the examples that cost the most, the worst first.
    """

    task: Task
    metric: str
    num_examples: int
    scores: dict[str, float]
    counted: str
    kinds: dict[str, int]
    confusion: ConfusionTable | None
    worst: list[WorstExample]

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "task": type(self.task).__name__}


_Details: TypeAlias = tuple[str, dict[str, int]]
"""What is counted in a task, as in a report: `counted` and `kinds`."""


def errors(
    path: str | Path,
    data: Source | None = None,
    *,
    num_examples: int = 20,
    unknown_labels: UnknownLabels = "error",
    overrides: Overrides = (),
) -> ErrorReport:
    """What a system gets wrong.

    Arguments:
        path: a run (folder or archive), or a file of predictions that `evaluate --predictions` wrote.
        data: what a run is evaluated on; by default, the test data of its config. Not used for files.
        num_examples: how many of the worst examples are kept.
        unknown_labels: `count` scores gold labels that the run does not know as its errors; see `evaluate`.
        overrides: `key.path=value`, in place of the values of the run's config.

    Raises:
        DataError, RunError: the run or the file cannot be read.
    """
    return error_report(read_predictions(Path(path), data, overrides, unknown_labels), num_examples=num_examples)


def error_report(found: Predictions, *, num_examples: int = 20) -> ErrorReport:
    """The same as `errors`, of the predictions of one model."""
    metric = found.task.build_metric()
    sums = found.sums([[row] for row in range(len(found.examples))])  # (examples, K)
    metric.update(found.predictions, found.examples)
    details = _DETAILS.get(type(metric), lambda *_: ("examples", {}))
    counted, kinds = details(found, metric)
    return ErrorReport(
        found.task,
        metric.main,
        len(found.examples),
        metric.compute(),
        counted,
        kinds,
        _confusion(found),
        _worst(found, sums, num_examples) if num_examples else [],
    )


def _worst(found: Predictions, sums: np.ndarray, count: int) -> list[WorstExample]:
    metric = found.task.build_metric()
    right = dataclasses.replace(found, predictions=[metric.right(example) for example in found.examples])
    best = right.sums([[row] for row in range(len(found.examples))])
    losses = unit_gains(sums[None], best[None], lambda each: metric.scores(each)[metric.main])
    order = np.argsort(-losses, kind="stable")[:count].tolist()
    equal = equal_below(float(metric.scores(best.sum(0))[metric.main]))
    return [
        WorstExample(float(losses[row]), found.examples[row], found.predictions[row])
        for row in order
        if losses[row] > equal
    ]


def _confusion(found: Predictions) -> ConfusionTable | None:
    confusion = Confusion()
    try:
        for example, prediction in zip(found.examples, found.predictions, strict=True):
            confusion.add(found.task.compared_labels(prediction), found.task.compared_labels(example))
    except ElmoTasksError:  # the task does not predict labels
        return None
    return confusion.table()


def _spans(found: Predictions, metric: Metric) -> _Details:
    kinds = Counter[str]()
    for example, prediction in zip(found.examples, found.predictions, strict=True):
        predicted, gold = (spans_of(metric, each[metric.field]) for each in (prediction, example))
        kinds.update(kind for kind, _, _ in align(predicted, gold))
    return "spans", {kind: kinds[kind] for kind in SPAN_KINDS}


def _answers(found: Predictions, metric: Metric) -> _Details:
    kinds = Counter(
        answer_kind(prediction[metric.field], example["answers"])
        for example, prediction in zip(found.examples, found.predictions, strict=True)
    )
    names = (*READING_KINDS, UNANSWERABLE) if isinstance(metric, Squad2Scores) else READING_KINDS
    return "answers", {kind: kinds[kind] for kind in names}


def _mentions(found: Predictions, metric: Metric) -> _Details:
    kinds = Counter[str]()
    for example, prediction in zip(found.examples, found.predictions, strict=True):
        kinds.update(mention_kinds(example["clusters"], prediction[metric.field]))
    return "mentions", dict(kinds)


def _labels(found: Predictions, metric: Metric) -> _Details:
    right, every = metric.sums()
    return "labels", {"right": int(right), "wrong": int(every - right)}


def _label_sets(found: Predictions, metric: Metric) -> _Details:
    right, predicted, gold, *_ = map(int, metric.sums())
    return "labels", {"right": right, "missing": gold - right, "extra": predicted - right}


_DETAILS: dict[type[Metric], Callable[[Predictions, Metric], _Details]] = {
    Accuracy: _labels,
    CoreferenceScores: _mentions,
    LabelSetF1: _label_sets,
    SpanF1: _spans,
    SquadScores: _answers,
    Squad2Scores: _answers,
    SrlF1: _spans,
}
