from __future__ import annotations

import json
from pathlib import Path

import pytest

from elmo_tasks.metrics.span_f1 import SpanF1


def score(predicted: list[str], gold: list[str]) -> dict[str, float]:
    metric = SpanF1()
    metric.update([{"tags": predicted}], [{"tags": gold}])
    return metric.compute()


def test_scores_counted_by_hand() -> None:
    gold = ["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC"]
    predicted = ["B-PER", "I-PER", "O", "B-ORG", "O", "B-LOC"]
    scores = score(predicted, gold)
    assert scores["precision"] == scores["recall"] == scores["f1"] == pytest.approx(200 / 3)
    assert scores["accuracy"] == pytest.approx(500 / 6)
    assert (scores["precision/LOC"], scores["recall/LOC"]) == (100, 50)
    assert scores["f1/LOC"] == pytest.approx(200 / 3)
    assert (scores["f1/PER"], scores["f1/ORG"]) == (100, 0)
    assert [name for name in scores if name.startswith("f1/")] == ["f1/LOC", "f1/ORG", "f1/PER"]
    assert [scores[f"support/{label}"] for label in ("LOC", "PER", "ORG")] == [2, 1, 0]


def test_bioul_scores_as_its_iob2_form() -> None:
    in_bioul = score(["U-LOC", "O", "B-PER", "I-PER", "L-PER"], ["B-LOC", "L-LOC", "B-PER", "I-PER", "L-PER"])
    in_iob2 = score(["B-LOC", "O", "B-PER", "I-PER", "I-PER"], ["B-LOC", "I-LOC", "B-PER", "I-PER", "I-PER"])
    assert in_bioul == in_iob2
    assert in_bioul["accuracy"] == 80


def test_bmes_scores_as_bioes() -> None:
    in_bmes = score(["B-LOC", "E-LOC", "B-LOC", "E-LOC"], ["B-LOC", "M-LOC", "M-LOC", "E-LOC"])
    in_bioes = score(["B-LOC", "E-LOC", "B-LOC", "E-LOC"], ["B-LOC", "I-LOC", "I-LOC", "E-LOC"])
    assert in_bmes == in_bioes
    assert in_bmes["accuracy"] == 75


def test_nothing_found_and_nothing_seen_score_zero() -> None:
    assert score(["O"], ["B-LOC"])["f1"] == 0
    assert SpanF1().compute() == {"f1": 0, "precision": 0, "recall": 0, "accuracy": 0}


def test_batches_add_up_and_reset_forgets() -> None:
    metric = SpanF1()
    sentences = [(["B-PER", "O"], ["B-PER", "O"]), (["O", "B-LOC"], ["B-LOC", "I-LOC"])]
    for predicted, gold in sentences:
        metric.update([{"tags": predicted}], [{"tags": gold}])
    in_batches = metric.compute()
    metric.reset()
    assert metric.compute()["f1"] == 0
    metric.update([{"tags": one} for one, _ in sentences], [{"tags": other} for _, other in sentences])
    assert metric.compute() == in_batches
    assert in_batches["f1"] == 50


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        SpanF1().update([{"tags": ["O"]}], [])
    with pytest.raises(ValueError, match="argument 2 is"):
        SpanF1().update([{"tags": ["O"]}], [{"tags": ["O", "O"]}])


def test_conlleval_s_verdict_is_reproduced_to_the_printed_digit(data_folder: Path) -> None:
    folder = data_folder / "scorer_cases"
    expected = json.loads((folder / "ner_expected.json").read_text())
    predictions, examples = [], []
    for block in (folder / "ner_conll2003_testb_output.txt").read_text().split("\n\n"):
        columns = [line.split() for line in block.splitlines() if line]
        examples.append({"tags": [column[1] for column in columns]})
        predictions.append({"tags": [column[2] for column in columns]})
    metric = SpanF1()
    metric.update(predictions, examples)
    scores = metric.compute()

    for name in ("accuracy", "precision", "recall", "f1"):
        assert f"{scores[name]:.2f}" == f"{expected[name]:.2f}"
    assert {name for name in scores if name.startswith("f1/")} == {f"f1/{label}" for label in expected["per_type"]}
    for label, values in expected["per_type"].items():
        ours = [f"{scores[f'{name}/{label}']:.2f}" for name in ("precision", "recall", "f1")]
        assert ours == [f"{value:.2f}" for value in values]
