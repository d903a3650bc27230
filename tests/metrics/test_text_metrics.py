"""Metrics of labels, sets of labels and numbers against scikit-learn and SciPy; the threshold by brute force."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import f1_score, mean_squared_error, precision_recall_fscore_support

from elmo_tasks.metrics import Correlation, LabelSetF1
from elmo_tasks.metrics.confusion import ConfusionTable, cells, confusion_table, label_scores, largest

LABELS = ("a", "b", "c", "d")


def sets(matrix: np.ndarray) -> list[dict[str, list[str]]]:
    return [{"labels": [label for label, is_in in zip(LABELS, row, strict=True) if is_in]} for row in matrix]


def test_sets_of_labels_as_scikit_learn() -> None:
    generator = np.random.default_rng(3)
    gold, found = generator.random((50, 4)) < 0.3, generator.random((50, 4)) < (0.3, 0.4, 0.5, 0.0)
    metric = LabelSetF1()
    metric.update(sets(found), sets(gold))
    scores = metric.compute()
    for average in ("micro", "macro"):
        expected = 100 * f1_score(gold, found, average=average, zero_division=0)
        assert scores[f"{average}_f1"] == pytest.approx(expected)
    by_label = 100 * f1_score(gold, found, average=None, zero_division=0)
    assert [scores[f"f1/{label}"] for label in LABELS] == pytest.approx(list(by_label))
    assert scores["exact_match"] == pytest.approx(100 * (gold == found).all(axis=1).mean())
    always_a = np.tile([True, False, False, False], (50, 1))
    assert metric.floor([{"labels": ["a"]}, {"labels": ["a", "b"]}, {"labels": []}]) == pytest.approx(200 * 2 / 6)
    assert metric.floor(sets(always_a)) == 100


@pytest.mark.parametrize("digits", [1, 6])
def test_the_threshold_is_the_best_one(digits: int) -> None:
    generator = np.random.default_rng(5)
    probabilities, gold = generator.random((30, 4)).round(digits), generator.random((30, 4)) < 0.4
    predictions = [
        {**each, "probabilities": dict(zip(LABELS, row, strict=True))}
        for each, row in zip(sets(probabilities >= 0.5), probabilities, strict=True)
    ]
    metric = LabelSetF1()
    metric.update(predictions, sets(gold))
    threshold = metric.choose_threshold()
    candidates = {100 * f1_score(gold, probabilities >= each, average="micro") for each in np.unique(probabilities)}
    assert metric.compute()["micro_f1"] == pytest.approx(max(candidates), abs=0.3)
    metric.reset()
    metric.update(sets(probabilities >= threshold), sets(gold))
    assert metric.compute()["micro_f1"] == pytest.approx(max(candidates), abs=0.3)


@pytest.mark.parametrize("offset", [0.0, -1e7, 1.7e9])
@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_large_numbers_as_scipy(offset: float, scale: float) -> None:
    generator = np.random.default_rng(11)
    gold = offset + scale * generator.integers(0, 60, 200)  # with ties
    predicted = gold + scale * generator.normal(0.5, 9, 200)
    pairs = [{"score": each} for each in predicted], [{"score": each} for each in gold]
    metric = Correlation()
    for half in (slice(0, 60), slice(60, 200)):
        metric.update(*(each[half] for each in pairs))
    distinct = 1e-15 * abs(offset) / scale  # float64 keeps no more of the numbers themselves
    expected = {
        "pearson": 100 * pearsonr(predicted, gold).statistic,
        "spearman": 100 * spearmanr(predicted, gold).statistic,
        "mse": mean_squared_error(gold, predicted),
    }
    assert metric.compute() == pytest.approx(expected, rel=1e-6 + 10 * distinct)


def test_numbers_that_are_all_the_same_have_no_correlation() -> None:
    metric = Correlation()
    metric.update([{"score": 0.1}] * 3, [{"score": each} for each in (1, 2, 4)])
    assert metric.compute()["pearson"] == metric.compute()["spearman"] == 0


def test_pairs_are_counted_in_the_order_of_gold_labels() -> None:
    assert confusion_table(Counter([("b", "a"), ("b", "b"), ("a", "b"), ("b", "x"), ("c", "b")])) == {
        "labels": ["b", "a", "c", "x"],
        "counts": [[1, 1, 0, 1], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]],
    }


def test_labels_with_a_natural_order_are_in_it() -> None:
    table = confusion_table(Counter([("2", "10"), ("2", "9"), ("2", "2"), ("10", "2")]))
    assert table == {"labels": ["2", "9", "10"], "counts": [[1, 1, 1], [0, 0, 0], [1, 0, 0]]}
    assert largest(table, 2) == {"labels": ["2", "other"], "counts": [[1, 2], [1, 0]]}
    assert largest({"labels": ["1", "2", "3"], "counts": [[0, 0, 1], [0, 9, 0], [0, 0, 5]]}, 2) == {
        "labels": ["2", "other"],
        "counts": [[9, 0], [0, 6]],
    }


def test_rare_labels_are_added_up() -> None:
    table = confusion_table(Counter({("a", "a"): 3, ("b", "b"): 1, ("b", "c"): 1, ("b", "x"): 1, ("c", "c"): 1}))
    assert largest(table, 4) == table
    assert largest(table, 3) == {"labels": ["a", "b", "other"], "counts": [[3, 0, 0], [0, 1, 2], [0, 0, 1]]}


def test_a_table_as_texts() -> None:
    assert cells({"labels": ["a", "b", "c"], "counts": [[3, 0, 1], [0, 0, 0], [0, 2, 0]]}, 2) == [
        ["", "a", "other"],
        ["a", "3", "1"],
        ["other", "·", "2"],
    ]
    for number, shown in ((1, 1), (12, 12), (13, 12)):
        labels = [str(label) for label in range(number)]
        assert len(cells({"labels": labels, "counts": [[0] * number] * number})) == 1 + shown


def test_the_scores_of_labels_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    gold, predicted = (generator.choice(["a", "b", "c", "d"], 60, p=shares) for shares in ([0.6, 0.3, 0.1, 0], None))
    scores = label_scores(confusion_table(Counter(zip(gold.tolist(), predicted.tolist(), strict=True))))
    labels = list(scores["labels"])
    expected = precision_recall_fscore_support(gold, predicted, labels=labels, zero_division=0)
    for name, values in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        found = [scores["labels"][label][name] for label in labels]
        np.testing.assert_allclose(found, values if name == "support" else 100 * values)
    assert scores["macro_f1"] == pytest.approx(100 * f1_score(gold, predicted, average="macro", zero_division=0))
    assert scores["majority"] == pytest.approx(100 * np.mean(gold == "a"))


def test_without_examples_all_scores_are_zero() -> None:
    table = ConfusionTable(labels=["a"], counts=[[0]])
    assert label_scores(table)["labels"]["a"]["f1"] == label_scores(table)["majority"] == 0
