"""What holds for every metric: batches add up, `reset` forgets, lengths must agree, and nothing added scores zero."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from elmo_tasks.metrics import (
    Accuracy,
    CoreferenceScores,
    Correlation,
    LabelSetF1,
    Metric,
    SpanF1,
    Squad2Scores,
    SquadScores,
    SrlF1,
)
from elmo_tasks.metrics.metric import f1_scores, quotient


class Case(NamedTuple):
    """A metric, pairs of a prediction and its gold example, some of its scores, and its names without any data."""

    metric: Metric
    pairs: list[tuple[dict[str, Any], dict[str, Any]]]
    scores: dict[str, float]
    names: list[str]


def tags(predicted: str, gold: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"tags": predicted.split()}, {"tags": gold.split()}


def clusters(*both: list[list[int]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Clusters of mentions of one token."""
    predicted, gold = ([[[token, token] for token in cluster] for cluster in each] for each in both)
    return {"clusters": predicted}, {"clusters": gold}


PARTS = ("mentions", "muc", "b_cubed", "ceaf_e", "ceaf_m", "blanc")
CASES = {
    "accuracy": Case(
        Accuracy(),
        [({"label": one}, {"label": other}) for one, other in (("good", "good"), ("bad", "fair"), ("fair", "fair"))],
        {"accuracy": 200 / 3},
        ["accuracy"],
    ),
    "accuracy of tokens": Case(
        Accuracy(field="tags"), [tags("DT NN NN", "DT NN VB"), tags("UH", "UH")], {"accuracy": 75}, ["accuracy"]
    ),
    "sets of labels": Case(
        LabelSetF1(),
        [({"labels": one.split()}, {"labels": two.split()}) for one, two in (("a b", "a b"), ("", "c"), ("a", "b"))],
        {"micro_f1": 400 / 7, "macro_f1": 400 / 9, "exact_match": 100 / 3},
        ["micro_f1", "micro_precision", "micro_recall", "exact_match", "macro_f1"],
    ),
    "numbers": Case(
        Correlation(),
        [({"score": one}, {"score": other}) for one, other in ((1.0, 2.0), (2.0, 1.0), (4.0, 5.0), (3.0, 1.5))],
        {"pearson": 68.250015, "spearman": 40, "mse": 5.25 / 4},
        ["pearson", "mse", "spearman"],
    ),
    "spans": Case(
        SpanF1(),
        [tags("B-PER O", "B-PER O"), tags("O B-LOC", "B-LOC I-LOC")],
        {"f1": 50, "accuracy": 50},
        ["f1", "precision", "recall", "accuracy"],
    ),
    "roles": Case(
        SrlF1(),
        [tags("B-A0 B-V O", "B-A0 B-V B-A1"), tags("O B-V O", "O B-V O")],
        {"precision": 100, "recall": 50, "perfect": 50},
        ["f1", "precision", "recall", "perfect"],
    ),
    "answers": Case(
        SquadScores(),
        [
            ({"answer": "red"}, {"answers": ["red"]}),
            ({"answer": "red mill"}, {"answers": ["mill"]}),
            ({"answer": None}, {"answers": ["mill"]}),
        ],
        {"exact_match": 100 / 3, "f1": (100 + 200 / 3) / 3},
        ["exact_match", "f1"],
    ),
    "answers, perhaps none": Case(
        Squad2Scores(),
        [
            ({"answer": "", "no_answer_score": 3, "best_answer": "red"}, {"answers": []}),
            ({"answer": "the red", "no_answer_score": -1, "best_answer": "the red"}, {"answers": ["red"]}),
            ({"answer": "", "no_answer_score": 1, "best_answer": "red mill"}, {"answers": ["mill"]}),
        ],
        {"exact": 200 / 3, "f1": 200 / 3, "NoAns_f1": 100, "HasAns_f1": 50, "best_f1": (200 + 200 / 3) / 3},
        [
            *(f"{group}{name}" for group in ("", "HasAns_", "NoAns_") for name in ("exact", "f1")),
            *("total", "HasAns_total", "NoAns_total"),
            *(f"best_{name}{end}" for name in ("exact", "f1") for end in ("", "_thresh")),
        ],
    ),
    "coreference": Case(
        CoreferenceScores(),
        [clusters([[1, 2], [3, 4]], [[1, 2, 3, 4]]), clusters([[1, 2]], [[1, 2]]), clusters([[8, 9]], [])],
        {f"{score}/muc": 75 for score in ("recall", "precision", "f1")},  # 2 + 1 of 3 + 1, and of 2 + 1 + 1
        ["conll_f1", *(f"{score}/{part}" for part in PARTS for score in ("f1", "precision", "recall"))],
    ),
    "another field": Case(
        CoreferenceScores("chains"),
        [({"chains": [[[1, 1], [2, 2]]]}, {"chains": [[[1, 1], [2, 2]]]})],
        {"conll_f1": 100},
        ["conll_f1", *(f"{score}/{part}" for part in PARTS for score in ("f1", "precision", "recall"))],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_batches_add_up_and_reset_forgets(case: Case) -> None:
    metric = case.metric
    metric.reset()
    for prediction, example in case.pairs:
        metric.update([prediction], [example])
    in_batches = metric.compute()
    assert {name: in_batches[name] for name in case.scores} == pytest.approx(case.scores)
    assert metric.main in in_batches
    metric.reset()
    assert metric.compute() == dict.fromkeys(case.names, 0)
    assert list(metric.compute()) == case.names
    metric.update([prediction for prediction, _ in case.pairs], [example for _, example in case.pairs])
    assert metric.compute() == in_batches
    metric.reset()
    examples = [example for _, example in case.pairs]
    metric.update([metric.right(example) for example in examples], examples)
    assert metric.compute()[metric.main] == 100


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_lengths_that_differ_are_refused(case: Case) -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        case.metric.update([case.pairs[0][0]], [])


@pytest.mark.parametrize("metric", [Accuracy("tags"), SpanF1(), SrlF1()])
def test_there_is_a_tag_for_each_token(metric: Metric) -> None:
    with pytest.raises(ValueError, match=r"argument 2 is|1 predicted tags for 2 tokens"):
        metric.update([{"tags": ["O"]}], [{"tags": ["O", "O"]}])


@pytest.mark.parametrize(
    ("labels", "share"), [(["a", "b", "a"], 200 / 3), ([["N", "V"], ["N", "N"], ["V"]], 60.0), ([], 0.0)]
)
def test_what_the_most_frequent_label_scores(labels: list[Any], share: float) -> None:
    assert Accuracy().floor([{"label": each} for each in labels]) == pytest.approx(share)
    assert SpanF1().floor([]) == 0


def test_what_is_divided_by_nothing_is_zero() -> None:
    whole = np.array([0.0, 4.0] * 50)
    for _ in range(3):
        np.full(100, 7.0)  # whatever the memory held before
        assert quotient(np.ones(100), whole).tolist() == [0.0, 0.25] * 50


def test_scores_of_many_samples_at_once() -> None:
    scores = f1_scores([1, 0, 2], [2, 0, 2], [4, 3, 2])
    assert {name: values.round(3).tolist() for name, values in scores.items()} == {
        "f1": [33.333, 0, 100],
        "precision": [50, 0, 100],
        "recall": [25, 0, 100],
    }
