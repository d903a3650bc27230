"""Compares systems on the same examples: scores with intervals, and tests of significance.

# M models of a system, N units, K sums
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmo_tasks.config import Overrides
from elmo_tasks.data_readers.sources import Source
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.extras.compare.significance import (
    Array,
    Interval,
    SeedDifference,
    bootstrap,
    equal_below,
    exact_interval,
    holm,
    mean_score,
    percentile_interval,
    randomization_p,
    seed_difference,
    unit_gains,
)
from elmo_tasks.extras.compare.systems import (
    Predictions,
    System,
    find_systems,
    is_system,
    read_predictions,
    stored_predictions,
)
from elmo_tasks.metrics import Accuracy, Metric
from elmo_tasks.runs.evaluate import UnknownLabels
from elmo_tasks.tasks import Task

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class SystemScore:
    """The score of a system: the mean of its models, with its interval. `scores` has one for each model.

    The interval is that of a bootstrap. An accuracy with all examples right, or all wrong, has the exact one.
    """

    name: str
    score: float
    interval: Interval
    scores: list[float]
    seeds: list[int]  # of the models, empty if there is only one


@dataclasses.dataclass(frozen=True)
class Difference:
    """How a system differs from the first one.

    Arguments:
        difference: of the scores, with its bootstrap interval.
        p_values: two-sided, by test: `randomization` and, if both have several seeds, `seeds`.
        corrected: the same with Holm's correction, if the first one is compared to several systems; otherwise empty.
        seeds: the difference over seeds, if both have several.
        better, worse, equal: how many units have made the score better, worse, or neither.
    """

    name: str
    against: str
    difference: float
    interval: Interval
    p_values: dict[str, float]
    corrected: dict[str, float]
    seeds: SeedDifference | None
    better: int
    worse: int
    equal: int


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The result of `compare`. `units` is the number of what the tests draw and swap, such as sentences."""

    task: Task
    metric: str
    num_examples: int
    num_units: int
    resamples: int
    seed: int
    systems: list[SystemScore]
    differences: list[Difference]

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "task": type(self.task).__name__}


def compare(
    paths: Sequence[str | Path],
    data: Source | None = None,
    *,
    metric: str | None = None,
    resamples: int = 10_000,
    seed: int = 13370,
    unknown_labels: UnknownLabels = "error",
    overrides: Overrides = (),
) -> Comparison:
    """Compares systems with the first one.

    Arguments:
        paths: of the systems, at least one: runs (folders or archives), folders of runs that `train --seeds` made, or
            files of predictions that `evaluate --predictions` wrote.
        data: what runs are evaluated on; by default, the test data of each one's config. Not used for files.
        metric: the name of the score; by default, the task's main one.
        resamples: how many resamples the intervals and the tests use.
        seed: of the resamples. The same seed gives the same numbers.
        unknown_labels: `count` scores gold labels that a run does not know as its errors; see `evaluate`.
        overrides: `key.path=value`, in place of the values of every run's config.

    Raises:
        ElmoTasksError: the systems were not measured on the same examples, or there is no such metric.
        DataError, RunError: a system cannot be read.
    """
    systems = [
        (each, [read_predictions(path, data, overrides, unknown_labels) for path in each.paths])
        for each in find_systems(paths)
    ]
    learned = frozenset[int]().union(*(each.learned for _, models in systems for each in models))
    if learned:
        logger.warning("%s that a system has learned from are left out for all", counted(len(learned), "example"))
        systems = [(system, [each.without(learned) for each in models]) for system, models in systems]
    return compare_predictions(systems, metric=metric, resamples=resamples, seed=seed)


def compare_predictions(
    systems: Iterable[tuple[System, Iterable[Predictions]]],
    *,
    metric: str | None = None,
    resamples: int = 10_000,
    seed: int = 13370,
) -> Comparison:
    """The same as `compare`, of systems with the predictions of their models."""
    first, measured, num_units = _measure(systems)
    sums = [each for _, each in measured]
    kind = type(first.task.build_metric())
    name = metric or kind.main
    if name not in (known := list(kind.scores(sums[0][0, 0]))):
        raise ElmoTasksError(f"{name!r} is not a score of {type(first.task).__name__}; expected {', '.join(known)}")

    def score(sums: Array) -> Array:
        return kind.scores(sums)[name]

    resampled = bootstrap(sums, score, resamples, seed)
    scores = [
        SystemScore(
            system.name,
            mean_score(own, score),
            _interval(kind, own, values),
            [mean_score(each[None], score) for each in own],
            [*system.seeds],
        )
        for (system, own), values in zip(measured, resampled, strict=True)
    ]
    differences = []
    for own, ours, values in zip(sums[1:], scores[1:], resampled[1:], strict=True):
        one, change = scores[0], values - resampled[0]
        difference, equal = ours.score - one.score, equal_below(one.score, ours.score)
        p_values = {"randomization": randomization_p(sums[0], own, score, resamples, seed)}
        seeds = seed_difference(one.scores, ours.scores, paired=one.seeds == ours.seeds)
        if seeds and seeds.p_value is not None:
            p_values["seeds"] = seeds.p_value
        gains = unit_gains(sums[0], own, score)
        improved = -gains if name in kind.lower_is_better else gains
        better, worse = int((improved > equal).sum()), int((improved < -equal).sum())
        differences.append(
            Difference(
                name=ours.name,
                against=one.name,
                difference=difference,
                interval=percentile_interval(change),
                p_values=p_values,
                corrected={},
                seeds=seeds,
                better=better,
                worse=worse,
                equal=len(improved) - better - worse,
            )
        )
    if len(differences) > 1:
        found = corrected([each.p_values for each in differences])
        differences = [dataclasses.replace(each, corrected=own) for each, own in zip(differences, found, strict=True)]
    return Comparison(first.task, name, len(first.examples), num_units, resamples, seed, scores, differences)


def split_paths(paths: Sequence[str]) -> tuple[list[str], str | None]:
    """The systems and, if the last path is not a system, the data. Raises an ElmoTasksError if no system needs data."""
    if len(paths) == 1 or is_system(paths[-1]):
        return list(paths), None
    *systems, data = paths
    if all(map(stored_predictions, systems)):
        raise ElmoTasksError(f"{data}: not a run or a file of predictions; predictions need no data")
    return systems, data


def _interval(kind: type[Metric], sums: Array, resampled: Array) -> Interval:
    """The interval of a score: a bootstrap has nothing to vary where each unit is an example, and all are alike."""
    if issubclass(kind, Accuracy) and (sums[..., 1] == 1).all() and np.ptp(sums[..., 0]) == 0:
        return exact_interval(int(sums[0, :, 0].sum()), sums.shape[1])
    return percentile_interval(resampled)


def _measure(
    systems: Iterable[tuple[System, Iterable[Predictions]]],
) -> tuple[Predictions, list[tuple[System, Array]], int]:
    """The first model's predictions, each system with its sums (M, N, K), and the number of units."""
    first: Predictions | None = None
    measured, units = [], list[list[int]]()
    for system, models in systems:
        sums = []
        for predictions in models:
            if first is None:
                first, units = predictions, predictions.units()
            else:
                first.check_same_examples(predictions)
            sums.append(dataclasses.replace(predictions, task=first.task).sums(units))
        measured.append((system, np.stack(sums)))
    if first is None:
        raise ElmoTasksError("no systems; expected at least one run or file of predictions")
    return first, measured, len(units)


def corrected(p_values: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """The p-values of systems, by test, with Holm's correction of each test over the systems that have it."""
    found: list[dict[str, float]] = [{} for _ in p_values]
    for test in dict.fromkeys(test for each in p_values for test in each):
        having = [number for number, each in enumerate(p_values) if test in each]
        for number, value in zip(having, holm([p_values[each][test] for each in having]), strict=True):
            found[number][test] = value
    return found
