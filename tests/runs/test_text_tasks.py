"""Sets of labels, numbers and numbers of pairs, from training to predictions, archives and errors."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from elmo_tasks.evaluation.error_report import errors
from elmo_tasks.rendering import describe, describe_versions
from elmo_tasks.rendering.html import Sections
from elmo_tasks.rendering.terminal import Terminal
from elmo_tasks.runs import load, train
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate

TEXTS = [["cold", "soup"], ["warm", "soup"], ["warm", "bread"], ["cold", "day"], ["warm", "day"], ["dry", "bread"]]
FOOD, COLD = {"soup", "bread"}, {"cold"}
DATA: dict[str, list[dict[str, Any]]] = {
    "multi_label": [
        {"tokens": each, "labels": ["food"] * bool(FOOD & {*each}) + ["cold"] * bool(COLD & {*each})} for each in TEXTS
    ],
    "regression": [{"tokens": each, "score": 20.0 + 5 * (each[0] == "warm")} for each in TEXTS],
    "pair_regression": [
        {"premise": one, "hypothesis": other, "score": 2.5 * len({*one} & {*other})}
        for one in TEXTS[:4]
        for other in TEXTS[:4]
    ],
}
INPUTS: dict[str, dict[str, Any]] = {
    "multi_label": {"text": "Warm soup."},
    "regression": {"tokens": ["warm", "soup"]},
    "pair_regression": {"premise": "Warm soup.", "hypothesis": "A cold day."},
}


def text_classifier(task: str) -> dict[str, Any]:
    return {
        "dataset_reader": {"type": "jsonl", "task": task},
        "train_data_path": "train",
        "validation_data_path": "dev",
        "vocabulary": {"lowercase_words": True},
        "model": {"type": "text_classifier", "embedder": {"words": {"size": 8}}, "pooling": "attention"},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 4, "validation_metric": "-loss", "optimizer": {"type": "adam", "lr": 0.05}},
    }


def test_times_in_seconds_are_learned_as_small_numbers_are(tmp_path: Path) -> None:
    found = []
    for start in (0.0, 1_700_000_000.0):
        data = [{**each, "score": start + each["score"]} for each in DATA["regression"]]
        datasets = dict.fromkeys(("train_data_path", "validation_data_path"), data)
        folder = tmp_path / str(start)
        scores = train.train(text_classifier("regression"), folder, datasets=datasets)["best"]["validation"]
        (result,) = load.load_predictor(folder)(INPUTS["regression"])
        found.append([scores[name] for name in ("pearson", "mse", "loss")] + [result["score"] - start])
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert found[0][1] > 0.1


@pytest.mark.parametrize("task", DATA)
def test_a_run_scores_and_predicts_the_same_wherever_it_is(task: str, tmp_path: Path) -> None:
    config = text_classifier(task)
    data = dict.fromkeys(("train_data_path", "validation_data_path"), DATA[task])
    found = train.train(config, tmp_path / "run", datasets=data)["best"]["validation"]
    archive(tmp_path / "run", tmp_path / "run.tar.gz")
    threshold = load.load_run(tmp_path / "run").model.threshold
    assert (threshold is None) == (task != "multi_label")
    assert threshold is None or threshold.item() != 0.5
    results = []
    for path in (tmp_path / "run", tmp_path / "run.tar.gz"):
        assert evaluate(path, DATA[task]) == pytest.approx(found, abs=1e-4)
        predictor = load.load_predictor(path)
        results += predictor(INPUTS[task])
    assert results[0] == results[1]

    report = errors(tmp_path / "run", DATA[task], num_examples=2)
    assert report.scores[report.metric] == pytest.approx(found[report.metric], abs=1e-4)
    stream = io.StringIO()
    drawings = [describe(predictor.task, results[0])]
    drawings += [describe_versions(predictor.task, each, {"run": each}) for each in DATA[task][:1]]
    for drawing in drawings:
        Terminal(Console(file=stream)).show(drawing)
        assert "<section>" in Sections().section(drawing)
    for word in (
        ("score", "20") if task == "regression" else ("food",) if task == "multi_label" else ("score", "premise")
    ):
        assert word in stream.getvalue()
