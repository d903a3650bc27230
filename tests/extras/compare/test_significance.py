"""Tests of significance against brute force, which reruns the metric on every possible resample, and on simulated
systems.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from elmo_tasks.extras.compare import significance
from elmo_tasks.extras.compare.significance import (
    Array,
    Interval,
    SeedDifference,
    bootstrap,
    holm,
    percentile_interval,
    randomization_p,
    seed_difference,
    unit_gains,
)
from elmo_tasks.metrics import Accuracy, CoreferenceScores, Metric, SpanF1

Outputs = list[dict[str, Any]]

RESAMPLES = 20_000


def random_tags(generator: random.Random) -> Outputs:
    return [{"tags": generator.choices(["O", "B-A", "I-A", "B-B"], k=4)} for _ in range(6)]


def random_clusters(generator: random.Random) -> Outputs:
    def document() -> dict[str, Any]:
        clusters: list[list[list[int]]] = [[], [], []]
        for token in range(9):
            generator.choice(clusters).append([token, token])
        return {"clusters": clusters}

    return [document() for _ in range(6)]


CASES = [(SpanF1(), random_tags), (CoreferenceScores(), random_clusters)]


def unit_sums(metric: Metric, predictions: Outputs, gold: Outputs) -> Array:
    """(1, N, K)"""
    sums = []
    for prediction, example in zip(predictions, gold, strict=True):
        metric.reset()
        metric.update([prediction], [example])
        sums.append(metric.sums())
    return np.array(sums, dtype=float)[None]


def rerun(metric: Metric, predictions: Sequence[Any], gold: Sequence[Any]) -> float:
    metric.reset()
    metric.update(predictions, gold)
    return metric.compute()[metric.main]


def score_of(metric: Metric) -> Callable[[Array], Array]:
    return lambda sums: metric.scores(sums)[metric.main]


def monte_carlo_error(p: float) -> float:
    """Four standard errors."""
    return 4 * (p * (1 - p) / RESAMPLES) ** 0.5 + 2 / RESAMPLES


@pytest.mark.parametrize(("metric", "make"), CASES, ids=["spans", "clusters"])
@pytest.mark.parametrize("seed", range(2))
def test_randomization_is_that_of_all_swaps(
    metric: Metric, make: Callable[[random.Random], Outputs], seed: int
) -> None:
    generator = random.Random(seed)
    gold, one, other = make(generator), make(generator), make(generator)
    observed = abs(rerun(metric, one, gold) - rerun(metric, other, gold))
    extreme = 0
    for swaps in itertools.product([False, True], repeat=len(gold)):
        pairs = [(b, a) if swap else (a, b) for swap, a, b in zip(swaps, one, other, strict=True)]
        first, second = (rerun(metric, outputs, gold) for outputs in zip(*pairs, strict=True))
        extreme += abs(first - second) >= observed - 1e-9
    exact = extreme / 2 ** len(gold)
    sums = unit_sums(metric, one, gold), unit_sums(metric, other, gold)
    found = randomization_p(*sums, score_of(metric), RESAMPLES, seed)
    assert abs(found - exact) <= monte_carlo_error(exact)


@pytest.mark.parametrize(("metric", "make"), CASES, ids=["spans", "clusters"])
def test_the_bootstrap_is_that_of_all_samples(metric: Metric, make: Callable[[random.Random], Outputs]) -> None:
    generator = random.Random(5)
    gold, one, other = (make(generator)[:3] for _ in range(3))
    exact = []
    for rows in itertools.product(range(3), repeat=3):
        first, second = (
            rerun(metric, [each[row] for row in rows], [gold[row] for row in rows]) for each in (one, other)
        )
        exact.append(second - first)
    ours, theirs = bootstrap(
        [unit_sums(metric, one, gold), unit_sums(metric, other, gold)], score_of(metric), RESAMPLES, 1
    )
    assert np.mean(theirs - ours) == pytest.approx(np.mean(exact), abs=4 * np.std(exact) / RESAMPLES**0.5)
    assert np.std(theirs - ours) == pytest.approx(np.std(exact), rel=0.03)


def test_systems_that_are_equal_do_not_differ() -> None:
    gold = random_tags(random.Random(1))
    sums = unit_sums(SpanF1(), random_tags(random.Random(2)), gold)
    assert randomization_p(sums, sums, score_of(SpanF1()), 100, 1) == 1
    several = np.concatenate([sums, unit_sums(SpanF1(), random_tags(random.Random(3)), gold)])
    assert not unit_gains(several, several, score_of(SpanF1())).any()


def test_the_gain_of_a_unit_is_that_of_rerunning_the_metric() -> None:
    metric, generator = SpanF1(), random.Random(4)
    gold, one, other = random_tags(generator), random_tags(generator), random_tags(generator)
    gains = unit_gains(unit_sums(metric, one, gold), unit_sums(metric, other, gold), score_of(metric))
    for row, gain in enumerate(gains.tolist()):
        changed = [*one[:row], other[row], *one[row + 1 :]]
        assert gain == pytest.approx(rerun(metric, changed, gold) - rerun(metric, one, gold))


def test_the_gain_of_a_unit_is_the_mean_over_the_models() -> None:
    one, other = (np.stack([rights, np.ones_like(rights)], axis=-1) for rights in (
        np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 1.0]])
    ))  # fmt: skip
    assert unit_gains(one, other, accuracy).tolist() == [25, 50]
    assert unit_gains(other, one, accuracy).tolist() == [-25, -50]


def accuracy(sums: Array) -> Array:
    return Accuracy.scores(sums)["accuracy"]


def simulated(generator: np.random.Generator, models: int, units: int = 80) -> Array:
    """Models of the same skill on texts, some of which are harder for all of them: (M, N, 2)."""
    right = generator.random((models, units)) < generator.beta(4, 2, units)
    return np.stack([right, np.ones_like(right)], axis=-1).astype(float)


@pytest.mark.parametrize("models", [(1, 1), (3, 2)])
def test_no_true_difference_is_seldom_significant(models: tuple[int, int]) -> None:
    generator, trials = np.random.default_rng(1), 300
    found = 0
    for trial in range(trials):
        both = simulated(generator, sum(models))
        one, other = both[: models[0]], both[models[0] :]
        found += randomization_p(one, other, accuracy, 300, trial) < 0.05
    assert 0.01 < found / trials < 0.09  # three standard errors around 0.05


def test_a_true_difference_is_found() -> None:
    one = simulated(np.random.default_rng(2), 1, 400)
    other = one.copy()
    other[0, :60, 0] = 1
    assert randomization_p(one, other, accuracy, 1000, 1) == pytest.approx(1 / 1001)


def test_an_interval_leaves_out_a_fortieth_at_each_end() -> None:
    interval = percentile_interval(np.arange(1001.0))
    assert (interval.low, interval.high) == pytest.approx((25, 975))


def test_many_resamples_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    both = simulated(np.random.default_rng(7), 2, units=40)
    whole = bootstrap([both[:1], both[1:], both[:1]], accuracy, 25, 1)
    monkeypatch.setattr(significance, "_NUMBERS_AT_ONCE", 400)  # ten resamples at once
    parts = bootstrap([both[:1], both[1:], both[:1]], accuracy, 25, 1)
    assert [each.shape for each in parts] == [(25,)] * 3
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(parts[0], parts[2])  # all systems share the resamples
    monkeypatch.setattr(significance, "_NUMBERS_AT_ONCE", 1)
    wrong, right = (np.stack([np.full((1, 5), value), np.ones((1, 5))], axis=-1) for value in (0.0, 1.0))
    p = randomization_p(wrong, right, accuracy, 63, 1)  # as large in 2 of 32 swaps
    assert 64 * p == pytest.approx(round(64 * p))
    assert 1 / 64 < p < 0.25


def test_differences_over_seeds() -> None:
    def difference(one: list[float], other: list[float], *, paired: bool) -> SeedDifference:
        found = seed_difference(one, other, paired=paired)
        assert found is not None
        return found

    paired = difference([80, 81, 82], [81, 83, 85], paired=True)  # 2 on average, standard error 1 / sqrt(3)
    assert (paired.mean, paired.paired) == (2, True)
    assert paired.interval.low == pytest.approx(2 - 4.302653 / 3**0.5)
    assert paired.p_value == pytest.approx(0.0741799)
    unpaired = difference([80, 82], [81, 83, 85], paired=False)
    assert unpaired.mean == 2
    assert unpaired.interval.low < 0 < unpaired.interval.high
    assert difference([80, 81], [82, 83], paired=True).p_value is None
    assert difference([80, 80], [82, 82, 82], paired=False).interval == Interval(2, 2)
    assert difference([80, 80, 80], [82, 83, 84], paired=False).p_value == pytest.approx(0.0351, abs=1e-4)


def test_holm_s_correction() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1, 1]
    assert holm([0.02]) == [0.02]


def test_the_same_seed_gives_the_same_numbers() -> None:
    both = simulated(np.random.default_rng(6), 2)
    first, again, other = (randomization_p(both[:1], both[1:], accuracy, 500, seed) for seed in (1, 1, 2))
    assert first == again
    assert 0 < abs(first - other) < 0.1
