"""Calibrates a run: finds the temperature with which its probabilities agree best with what is right."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from numpy.typing import NDArray

from elmo_tasks.config import Overrides, override_list
from elmo_tasks.data_readers.sources import Source
from elmo_tasks.errors import RunError
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.locks import locked
from elmo_tasks.metrics.squad import normalize_answer
from elmo_tasks.metrics.srl import VERB
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.evaluate import evaluate_examples, evaluate_run
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.load import Run, load_run
from elmo_tasks.tasks import Tagging, Task
from elmo_tasks.text.tag_schemes import spans_of_tags

logger = logging.getLogger(__name__)

_BINS = 15
_FEW = 100  # units; with fewer, temperatures of other samples differ a lot
_FEWEST_ANSWERS = 10  # from which a precision is computed
_Units = NDArray[np.float64]  # (N, 2): the probability of each unit, and whether it is right, 1 or 0


def calibrate(
    path: str | Path, data: Source | None = None, test: Source | None = None, *, overrides: Overrides = ()
) -> dict[str, float]:
    """Finds the temperature of a run, from 0.1 to 10, and writes it to the run.

    Source: Guo et al. (2017), "On Calibration of Modern Neural Networks", section 4.2. Departs from it in the
    likelihood: it is that of predictions being right or wrong, not that of the gold labels; see `units_of`.

    Arguments:
        path: the folder of a run that has finished.
        data: what its reader can read, with gold labels; by default its validation data and, as `test`, its test data.
            Examples that the run has learned from are left out. A warning says so if it has fewer than 100 predictions.
        test: other data, whose errors are also measured.

    Returns:
        the `temperature` and, for `validation` and `test`, the number of `units` and their expected calibration error
        in percent, `error`, and `uncalibrated_error` without the temperature: `{"units/test": ..., "error/test": ...}`.

    Raises:
        RunError: it is an archive, has not finished, or has no validation data; its predictions have no probabilities,
            or none is right, or none is wrong; or a cross-validation has calibrated it, and no `data` is given.
    """
    folder = open_run(path)
    if folder.archive or (folder.training_state.is_file() and not folder.metrics.is_file()):
        raise RunError(f"{path}: an archive, or not finished; expected the folder of a run that has finished")
    with locked(folder.path):
        run = load_run(path, overrides=[*override_list(overrides), "calibrated=false"])
        if data is None and folder.cross_validation.is_file():
            raise RunError(
                f"{path}: its cross-validation has calibrated it; to calibrate it on other data, name the data"
            )
        if data is None:
            data, test = run.config.validation_data_path, test or run.config.test_data_path
        if data is None:
            data = Data.read(run.config).held_out.get("validation")
        if data is None:
            raise RunError(f"{path}: has no validation data; expected DATA that it was not trained on")
        sources = {"validation": data} | ({"test": test} if test is not None else {})

        def evaluating(source: Source) -> Callable[[], object]:
            return lambda: evaluate_run(run, source, unknown_labels="count", learned="left out")

        units_at = {name: _units(run, evaluating(source)) for name, source in sources.items()}
        result, answers = _calibrated(run.model.task, units_at)
        if (count := len(units_at["validation"](1.0))) < _FEW:
            logger.warning("%s: the temperature depends on chance: %d predictions; expected %d", path, count, _FEW)
        if folder.cross_validation.is_file():
            logger.info("%s: this calibration replaces that of the cross-validation", path)
        write_json(folder.calibration, {**result, "answers": answers})
    return result


def calibrate_folds(models: Sequence[tuple[Run, datasets.Dataset]]) -> dict[str, Any]:
    """The same as `calibrate` writes, for the models of a cross-validation, each with its fold of the examples.

    It is empty if their predictions have no probabilities, or all are right or wrong.
    """
    try:
        own = [_units(run, lambda run=run, fold=fold: evaluate_examples(run, fold)) for run, fold in models]  # type: ignore[misc]
        units_at = {"validation": lambda temperature: np.concatenate([each(temperature) for each in own])}
        result, answers = _calibrated(models[0][0].model.task, units_at)
        return {**result, "answers": answers}
    except RunError:
        return {}


def answers_by_precision(task: Task, units: _Units) -> list[dict[str, float]]:
    """What can be had if only the surest labels are given: from the most to the fewest, each more often right.

    Arguments:
        units: of predictions by models that had not seen the examples.

    Returns:
        the `probability` from which labels are given, their `share` of all and their `precision`, from 0 to 1. It is
        empty for other tasks than those with one label.
    """
    if task.predicted_field != "label":
        return []
    units = units[np.argsort(-units[:, 0], kind="stable")]
    precision = units[:, 1].cumsum() / np.arange(1, len(units) + 1)
    found: list[dict[str, float]] = []
    for row in range(min(len(units), _FEWEST_ANSWERS) - 1, len(units))[::-1]:
        is_last = row == len(units) - 1 or units[row, 0] > units[row + 1, 0]  # of those with the same probability
        if is_last and (not found or precision[row] > found[-1]["precision"]):
            share = (row + 1) / len(units)
            found.append({"probability": float(units[row, 0]), "share": share, "precision": float(precision[row])})
    return found


def _calibrated(
    task: Task, units_at: Mapping[str, Callable[[float], _Units]]
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """What `calibrate` returns, and `answers_by_precision`. Temperature and answers are of the validation data."""
    best = _best_temperature(units_at["validation"])
    result, answers = {"temperature": best}, list[dict[str, float]]()
    for name, units in units_at.items():
        before, after = units(1.0), units(best)
        result[f"units/{name}"] = len(after)
        result[f"error/{name}"] = calibration_error(after)
        result[f"uncalibrated_error/{name}"] = calibration_error(before)
        if name == "validation":
            answers = answers_by_precision(task, after)
    return result, answers


def _units(run: Run, evaluate: Callable[[], object]) -> Callable[[float], _Units]:
    """A function from temperatures to the units of a data set. The model reads the data only once, here."""
    outputs: list[Any] = []
    hook = run.model.register_forward_hook(lambda _, inputs, output: outputs.append((output, *inputs)))
    evaluate()
    hook.remove()

    @torch.inference_mode()
    def units(temperature: float) -> _Units:
        run.model.temperature = temperature
        found: list[tuple[float, bool]] = []
        for output, batch in outputs:
            for pair in zip(batch.examples, run.model.decode(output, batch), strict=True):
                found += units_of(run.model.task, *pair)
        return np.array(found, float).reshape(-1, 2)

    return units


def units_of(task: Task, example: Mapping[str, Any], prediction: Mapping[str, Any]) -> Iterable[tuple[float, bool]]:
    """The probability of each unit of a prediction, and whether it is right.

    A unit is the label, each label that may be in a set, a span, a tag where tags are not spans, an argument of a
    predicate, an answer, which is right if it matches exactly, or the link of a mention, right within a gold cluster.

    Raises:
        RunError: the task has other predictions.
    """
    field = task.predicted_field
    chances: Any = prediction.get("probabilities")
    gold: Any = example.get(field)
    if field == "label":
        yield chances[prediction[field]], prediction[field] == gold
    elif field == "labels":
        yield from ((chance, label in gold) for label, chance in chances.items())
    elif isinstance(task, Tagging) and not task.tag_scheme:
        yield from zip(chances, map(operator.eq, prediction[field], gold), strict=True)
    elif field == "tags":
        gold_spans = spans_of_tags(gold)
        for label, start, end in spans_of_tags(prediction[field]):
            if label != VERB or isinstance(task, Tagging):
                yield min(chances[start : end + 1]), (label, start, end) in gold_spans
    elif field == "answer":
        chance = prediction.get("probability", prediction["best"][0]["probability"])
        yield chance, normalize_answer(prediction[field]) in map(normalize_answer, example["answers"] or [""])
    elif field == "clusters":
        mentions = prediction["mentions"]
        for mention, chance, antecedent in zip(mentions, chances, prediction["antecedents"], strict=True):
            if antecedent is not None:
                yield chance, any(mention in cluster and mentions[antecedent] in cluster for cluster in gold)
    else:
        raise RunError(f"calibrate: expected predictions with probabilities, got {task.summary}")


def _best_temperature(units: Callable[[float], _Units]) -> float:
    from scipy.optimize import minimize_scalar  # imported here, as only this function needs it

    def loss(log_temperature: float) -> float:
        chances, right = units(math.exp(log_temperature)).T
        chances = chances.clip(1e-6, 1 - 1e-6)
        return -float(np.where(right, np.log(chances), np.log1p(-chances)).mean())

    if len(set(units(1.0)[:, 1])) < 2:
        raise RunError("no prediction is right, or none is wrong; expected data with both")
    bounds, tolerance = (math.log(0.1), math.log(10)), {"xatol": 0.005}
    return round(math.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options=tolerance).x), 4)


def calibration_error(units: _Units) -> float:
    """The expected calibration error of units (N, 2), in percent, with 15 bins of the same width."""
    bins = np.minimum(units[:, 0] * _BINS, _BINS - 1).astype(int)
    return float(100 * np.abs(np.bincount(bins, units[:, 0] - units[:, 1])).sum() / len(units))
