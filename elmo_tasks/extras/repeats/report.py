"""What a cross-validation has found: as JSON, as text on a terminal, and as a page with pictures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks import hooks
from elmo_tasks.commands.console import print_confusion, print_table
from elmo_tasks.errors import counted
from elmo_tasks.extras.compare.comparison import compare_predictions
from elmo_tasks.extras.compare.error_report import error_report, side_by_side
from elmo_tasks.extras.compare.systems import Predictions, System
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.metrics.confusion import largest
from elmo_tasks.rendering.drawing import Bars, Drawing, HeatMap, Rows
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import TRAINING, Data
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.tasks.task import Example

_RESAMPLES, _SEED = 2000, 1
_SHOWN = 10  # examples that may be labelled wrong
_MOST_TEXT = 80  # characters of an example
_MOST_LABELS = 12  # of a confusion table
Pair = Mapping[str, Mapping[str, Any]]


def write_report(
    run: RunFolder,
    data: Data,
    config: ExperimentConfig,
    pairs: Sequence[Pair],
    losses: Mapping[int, float],
    num_folds: int,
    epoch: int,
    start: str | None = None,
) -> dict[str, float]:
    """Writes `cross_validation.json` and, where pages can be made, `report.html`. Returns the scores.

    Arguments:
        pairs: each training example with the prediction of the model that had not seen it, in the order of the data.
        losses: by how much the validation metric changes if models learn from fewer examples, by their number.
        epoch: how many epochs the last model was trained for.
        start: the run that all models started from, if it does not say what it has learned from.
    """
    task = data.reader.task
    examples, predictions = ([dict(pair[key]) for pair in pairs] for key in ("example", "prediction"))
    reader, source = data.origin(config, TRAINING)
    places = list(reader.locations(source, examples))
    found = Predictions(str(run.path), task, examples, predictions, places)
    errors = error_report(found, num_examples=_SHOWN)
    system = compare_predictions([(System("", [run.path]), [found])], resamples=_RESAMPLES, seed=_SEED).systems[0]
    metric = task.build_metric()
    result: dict[str, Any] = {
        "folds": num_folds,
        "examples": len(pairs),
        "epoch": epoch,
        "unknown_start": start,
        "metric": metric.main,
        "score": system.score,
        "interval": dataclasses.asdict(system.interval),
        "most_frequent_label": metric.floor(examples) or None,
        "scores": errors.scores,
        "growth": growth_of(losses, errors.scores.get(config.trainer.metric_name), len(pairs), config),
        "confusion": errors.confusion,
        "doubtful": _doubtful(data, pairs, places),
    }
    write_json(run.cross_validation, result)
    if open_page := hooks.find("page", "html"):
        with open_page(str(run.report), run.path.resolve().name, lambda: "") as draw:
            for drawing in _drawings(result):
                draw(drawing)
            for worst in errors.worst if not result["doubtful"] else ():
                draw([Rows([("place", worst.place)]), *side_by_side(task, worst)])
    return errors.scores


def headline(result: Mapping[str, Any]) -> str:
    """The score in one line, with what it can be compared with."""
    low, high = result["interval"]["low"], result["interval"]["high"]
    text = f"{result['metric']} {result['score']:.1f} (95 % interval {low:.1f} to {high:.1f})"
    text += f", each of {result['examples']:,} examples predicted by a model that had not seen it"
    text += f", if {result['unknown_start']} had not" if result["unknown_start"] else ""
    if not (floor := result["most_frequent_label"]):
        return text
    text += f"; always giving the most frequent label has {floor:.1f}"
    return text if result["score"] > floor else f"{text}: the model is not better than that"


def outlook(result: Mapping[str, Any]) -> str:
    """What more examples would give, judged by the growth so far; empty if it is not known."""
    if not result["growth"]:
        return ""
    points = result["growth"]["points_for_twice_as_many"]
    if points is None:
        return "it is not clear whether more examples would help: half of them gave a better score than all"
    about = f"about {counted(round(points), 'point')}" if points >= 1 else "less than a point"
    return f"{result['examples']:,} more examples would give {about}"


def growth_of(
    losses: Mapping[int, float], score: float | None, count: int, config: ExperimentConfig
) -> dict[str, Any] | None:
    """The validation metric by the number of examples, and what twice as many would add; None if it is the loss, which
    predictions do not have.

    What is missing to the best score falls by the same factor with each doubling of the examples: a power law, as by
    Hestness et al. (2017), "Deep Learning Scaling is Predictable, Empirically". If the last doubling made the score
    worse, the points are None.
    """
    if not losses or score is None:
        return None
    scores = {number: score + loss for number, loss in losses.items()} | {count: score}
    errors = [100 - each if config.trainer.higher_is_better else each for each in scores.values()]
    fewest, most = errors[0], errors[-1]
    doublings = math.log2(count / next(iter(scores)))
    factor = min(1.0, most / fewest) ** (1 / doublings) if fewest > 0 else 1.0
    return {
        "metric": config.trainer.metric_name,
        "scores": {str(number): value for number, value in scores.items()},
        "points_for_twice_as_many": max(0.0, most * (1 - factor)) if most <= errors[-2] else None,
    }


def _doubtful(data: Data, pairs: Sequence[Pair], places: Sequence[str]) -> list[dict[str, Any]]:
    """The examples that are most likely labelled wrong: another label is much more likely than theirs.

    Source: Northcutt et al. (2021), "Confident Learning", section 3.3, which ranks by the same margin. For tasks
    without one label it is empty.
    """
    if data.reader.task.predicted_field != "label":
        return []
    found = []
    for place, pair in zip(places, pairs, strict=True):
        gold, predicted = pair["example"]["label"], pair["prediction"]["label"]
        chances = pair["prediction"]["probabilities"]
        if predicted != gold:
            found.append((chances[predicted] - chances.get(gold, 0.0), place, pair))
    found.sort(key=lambda each: -each[0])
    return [
        {
            "place": place,
            "text": _text(data, pair["example"]),
            "label": pair["example"]["label"],
            "predicted": pair["prediction"]["label"],
            "probability": pair["prediction"]["probabilities"][pair["prediction"]["label"]],
        }
        for _, place, pair in found[:_SHOWN]
    ]


def _text(data: Data, example: Example) -> str:
    text = " | ".join(" ".join(tokens) for tokens in data.reader.task.texts(example))
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"


def print_report(folder: str | Path) -> None:
    """Prints what `write_report` has written for a run."""
    run = RunFolder(folder)
    result = read_json(run.cross_validation, dict[str, Any], "the result of a cross-validation")
    if result["confusion"]:
        print_confusion(result["confusion"], title="labels")
    if result["doubtful"]:
        rows = [
            [each["place"], each["label"], f"{each['predicted']} ({each['probability']:.2f})", each["text"]]
            for each in result["doubtful"]
        ]
        print_table("most likely labelled wrong", ("place", "label", "predicted", "text"), rows)
    if growth := result["growth"]:
        rows = [[f"{int(number):,}", f"{score:.1f}"] for number, score in growth["scores"].items()]
        print_table("the score by the number of examples", ("examples", growth["metric"]), rows)
        print(outlook(result))
    print(headline(result))


def _drawings(result: Mapping[str, Any]) -> list[Drawing]:
    """The score, its growth, the confusion table, and the examples that may be labelled wrong."""
    score: Drawing = [Rows([("score", headline(result))])]
    if floor := result["most_frequent_label"]:
        shares = [(result["metric"], result["score"] / 100), ("always the most frequent label", floor / 100)]
        score.append(Bars(shares))
    drawings = [score]
    if growth := result["growth"]:
        scores = [(f"{int(number):,} examples", each / 100) for number, each in growth["scores"].items()]
        drawings.append([Rows([(f"{growth['metric']} by the number of examples", outlook(result))])])
        if all(0 <= share <= 1 for _, share in scores):
            drawings[-1].append(Bars(scores, chosen=(len(scores) - 1,)))
    if result["confusion"]:
        table = largest(result["confusion"], _MOST_LABELS)
        shares_of_row = [[each / max(1, sum(row)) for each in row] for row in table["counts"]]
        counts = [[str(each or "") for each in row] for row in table["counts"]]
        title = "labels (rows), and what is predicted (columns)"
        drawings.append([HeatMap(table["labels"], table["labels"], shares_of_row, title, counts)])
    if doubtful := result["doubtful"]:
        items = [
            (
                f"{each['place']}: {each['label']}, predicted {each['predicted']} ({each['probability']:.2f})",
                each["text"],
            )
            for each in doubtful
        ]
        drawings.append([Rows([("most likely labelled wrong", "The surest predictions of another label."), *items])])
    return drawings
