"""Runs that are loaded: what they predict, how they are scored, and labels that they do not know."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from accelerate import PartialState

from elmo_tasks import cli
from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.runs import load
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.text.tokenizers import TREEBANK
from tests.runs.small_runs import SmallRun


def test_the_tokenizer_of_the_config_splits_what_is_predicted(trained: SmallRun) -> None:
    assert load.load_predictor(trained.path).tokenizer.version == TREEBANK.version
    predictor = load.load_predictor(trained.path, overrides=["dataset_reader.tokenizer=unicode"])
    (result,) = predictor.predict([{"text": "\u6211\u6765"}])
    assert result["tokens"] == ["\u6211", "\u6765"]


def test_evaluate_gives_the_metrics_of_training(trained: SmallRun, settings: dict[str, Any], tmp_path: Path) -> None:
    predictions = tmp_path / "predictions.jsonl"
    for limit in (None, 30):  # other batches change nothing
        found = evaluate(trained.path, settings["test_data_path"], predictions=predictions, batch_tokens=limit)
        assert found == pytest.approx(trained.json("metrics.json")["test"], abs=1e-4)
    records = [json.loads(line) for line in predictions.read_text().splitlines()]
    first = [record["example"]["sentence"] for record in records if record["example"]["document"] == 0]
    assert first == list(range(len(first)))
    assert all(len(each["prediction"]["probabilities"]) == len(each["example"]["tokens"]) for each in records)


def test_evaluate_counts_confusions(trained: SmallRun, settings: dict[str, Any]) -> None:
    table = evaluate(trained.path, settings["test_data_path"], confusion=True)["confusion"]
    lines = (line.split() for line in Path(settings["test_data_path"]).read_text().splitlines())
    tags = [words[-1] for words in lines if words and words[0] != "-DOCSTART-"]
    gold = Counter(tag if tag == "O" else tag[2:] for tag in tags)
    rows = dict(zip(table["labels"], map(sum, table["counts"]), strict=True))
    assert rows == {label: gold[label] for label in table["labels"]}
    assert sum(rows.values()) == len(tags)


@pytest.mark.slow
def test_loading_a_run_does_not_import_the_compiler_of_torch(trained: SmallRun) -> None:
    """It takes a second, and a tensor without memory that gets random values imports it."""
    program = "import sys; from elmo_tasks.runs.load import load_run; load_run(sys.argv[1]); print(*sys.modules)"
    command = [sys.executable, "-c", program, str(trained.path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not {"torch._dynamo", "torch.fx.experimental.symbolic_shapes"} & {*done.stdout.split()}


def test_a_predictor_leaves_the_device_of_others_open(trained: SmallRun) -> None:
    load.load_predictor(trained.path, overrides=["trainer.device=cpu"])
    assert not PartialState._shared_state


UNSEEN = Path(__file__).parents[1] / "odd_files" / "unseen.txt"  # a span TIME, which no run here knows
KNOWN = "Brusk B-LOC\n- O\n\nMary B-PER\nworks O\n"


@pytest.mark.parametrize("command", ["evaluate", "compare", "errors"])
def test_a_label_that_the_run_does_not_know_is_refused_or_counted(
    command: str, trained: SmallRun, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    words = [command, str(trained.path), str(UNSEEN), "--json"]
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert "unseen.txt:1: in the example that begins here: the label 'U-TIME' is not among" in error
    assert "--unknown-labels count (unknown_labels='count') counts it as an error of the run" in error

    assert cli.main([*words, "--unknown-labels", "count"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "unseen.txt: the run does not know some labels, which count as its errors: 'U-TIME' (1); the" in caplog.text
    predictions = load.load_predictor(trained.path)({"tokens": ["Mary", "works", "Monday"]})
    metric = SpanF1()
    metric.update(predictions, [{"tags": ["B-PER", "O", "B-TIME"]}])
    if command == "compare":
        assert (shown["num_examples"], shown["systems"][0]["score"]) == (1, metric.compute()["f1"])
    else:
        assert (shown["scores"] if command == "errors" else shown) == metric.compute()
        assert metric.compute()["recall"] <= 50


def test_examples_with_unknown_labels_have_no_loss(trained: SmallRun, tmp_path: Path) -> None:
    known, both = tmp_path / "known.txt", tmp_path / "both.txt"
    known.write_text(KNOWN)
    both.write_text(f"{UNSEEN.read_text()}\n{KNOWN}")
    found, known_only = (evaluate(trained.path, path, unknown_labels="count") for path in (both, known))
    assert known_only == evaluate(trained.path, known)
    assert found["loss"] == pytest.approx(known_only["loss"], rel=1e-5)
    assert found["support/TIME"] == 1
    assert "loss" not in evaluate(trained.path, UNSEEN, unknown_labels="count")
