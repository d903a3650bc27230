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


@pytest.mark.slow
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
    candidates = {100 * f1_score(gold, probabilities >= each, average="micro") for each in np.linspace(0, 1, 2001)}
    assert metric.compute()["micro_f1"] == pytest.approx(max(candidates), abs=0.3)
    metric.reset()
    metric.update(sets(probabilities >= threshold), sets(gold))
    assert metric.compute()["micro_f1"] == pytest.approx(max(candidates), abs=0.3)


def test_numbers_as_scipy() -> None:
    generator = np.random.default_rng(7)
    predicted, gold = generator.normal(1000, 3, 40), generator.integers(0, 6, 40).astype(float)  # with ties
    metric = Correlation()
    metric.update([{"score": each} for each in predicted], [{"score": each} for each in gold])
    assert metric.compute() == pytest.approx(
        {
            "pearson": 100 * pearsonr(predicted, gold).statistic,
            "spearman": 100 * spearmanr(predicted, gold).statistic,
            "mse": mean_squared_error(gold, predicted),
        }
    )


def test_numbers_that_are_all_the_same_have_no_correlation() -> None:
    metric = Correlation()
    metric.update([{"score": 0.1}] * 3, [{"score": each} for each in (1, 2, 4)])
    assert metric.compute()["pearson"] == metric.compute()["spearman"] == 0
