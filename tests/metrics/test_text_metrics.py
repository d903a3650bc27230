"""The metrics of sets of labels and of numbers against scikit-learn's and SciPy's; the threshold by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import f1_score, mean_squared_error

from elmo_tasks.metrics import Correlation, LabelSetF1

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


def test_sums_of_parts_of_large_numbers_add_up() -> None:
    generator = np.random.default_rng(12)
    gold = 1.7e9 + generator.normal(size=90)
    predicted = gold + generator.normal(0.3, 0.5, 90)
    metric, sums = Correlation(), []
    metric.prepare([{"score": each} for each in gold])
    for one, other in zip(predicted, gold, strict=True):
        metric.reset()
        metric.update([{"score": one}], [{"score": other}])
        sums.append(metric.sums())
    rows = generator.integers(0, 90, (5, 90))
    scores = metric.scores(np.array(sums)[rows].sum(1))
    np.testing.assert_allclose(
        scores["pearson"], [100 * pearsonr(predicted[each], gold[each]).statistic for each in rows], rtol=1e-6
    )
    np.testing.assert_allclose(scores["mse"], [np.mean((predicted - gold)[each] ** 2) for each in rows], rtol=1e-6)


def test_numbers_that_are_all_the_same_have_no_correlation() -> None:
    metric = Correlation()
    metric.update([{"score": 0.1}] * 3, [{"score": each} for each in (1, 2, 4)])
    assert metric.compute()["pearson"] == metric.compute()["spearman"] == 0
