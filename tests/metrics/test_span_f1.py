import json
from pathlib import Path

import numpy as np
import pytest
from seqeval.metrics import accuracy_score, classification_report

from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.text.tag_schemes import Span, TagScheme, tags_of_spans


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


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOUL", "BIOES", "BMES"])
def test_random_spans_as_seqeval(scheme: TagScheme) -> None:
    """seqeval reads no U, L and M: these are its S, E and I."""
    generator = np.random.default_rng(11)

    def sentence(length: int) -> list[str]:
        starts = [start for start in range(0, length - 2, 3) if generator.random() < 0.5]
        spans = [Span(str(generator.choice(["A", "B"])), start, start + int(generator.integers(3))) for start in starts]
        return tags_of_spans(spans, length, scheme)

    lengths = generator.integers(3, 12, 40)
    gold, found = ([sentence(length) for length in lengths] for _ in range(2))
    metric = SpanF1()
    metric.update([{"tags": tags} for tags in found], [{"tags": tags} for tags in gold])
    scores = metric.compute()
    theirs = [[[tag.translate({ord("U"): "S", ord("L"): "E", ord("M"): "I"}) for tag in tags] for tags in side]
              for side in (gold, found)]  # fmt: skip
    report = classification_report(*theirs, output_dict=True, zero_division=0)
    for label, suffix in (("micro avg", ""), ("A", "/A"), ("B", "/B")):
        for ours, name in (("f1", "f1-score"), ("precision", "precision"), ("recall", "recall")):
            assert scores[ours + suffix] == pytest.approx(100 * report[label][name])
    if scheme == "IOB2":
        assert scores["accuracy"] == pytest.approx(100 * accuracy_score(*theirs))


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
