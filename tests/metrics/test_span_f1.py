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


@pytest.mark.parametrize(
    ("tags", "others", "accuracy"),
    [
        ("U-LOC O B-PER I-PER L-PER/B-LOC L-LOC B-PER I-PER L-PER",
         "B-LOC O B-PER I-PER I-PER/B-LOC I-LOC B-PER I-PER I-PER", 80),
        ("B-LOC E-LOC B-LOC E-LOC/B-LOC M-LOC M-LOC E-LOC", "B-LOC E-LOC B-LOC E-LOC/B-LOC I-LOC I-LOC E-LOC", 75),
    ],
)  # fmt: skip
def test_schemes_score_alike(tags: str, others: str, accuracy: float) -> None:
    """BIOUL as its IOB2 form, and BMES as BIOES."""
    one, other = (score(*(each.split() for each in both.split("/"))) for both in (tags, others))
    assert one == other
    assert one["accuracy"] == accuracy


def test_nothing_found_scores_zero() -> None:
    assert score(["O"], ["B-LOC"])["f1"] == 0


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
