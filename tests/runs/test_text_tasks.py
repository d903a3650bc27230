"""Sets of labels, numbers and numbers of pairs, from training to predictions, archives and errors."""

from __future__ import annotations

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


@pytest.mark.parametrize("task", DATA)
def test_a_run_scores_and_predicts_the_same_wherever_it_is(task: str, tmp_path: Path) -> None:
    config = {
        "dataset_reader": {"type": "jsonl", "task": task},
        "train_data_path": "train",
        "validation_data_path": "dev",
        "vocabulary": {"lowercase_words": True},
        "model": {"type": "text_classifier", "embedder": {"words": {"size": 8}}, "pooling": "attention"},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 4, "validation_metric": "-loss", "optimizer": {"type": "adam", "lr": 0.05}},
    }
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
