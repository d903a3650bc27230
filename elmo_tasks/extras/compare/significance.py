"""Intervals and tests of significance for scores of whole data sets, such as F1, that are not means over examples.

All work on sums: each unit of the data (a sentence, say) has K counts, and the score is a function of their sums over
the units. So a resample costs a product of matrices, and no scorer runs again. A system may have several models, one
for each seed; its score is then their mean, and all of them are drawn and swapped together.

SciPy's `permutation_test` and `bootstrap` draw other random numbers from the same seed, which would change published
p-values, and copy all units for each resample. SciPy does not have Holm's correction.

# M models of a system, N units, K sums, R resamples
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Score = Callable[[Array], Array]  # (..., K) -> (...)

_CONFIDENCE = 0.95
_EQUAL = 1e-11  # of a score: a smaller difference comes from rounding, since sums in another order round differently
_NUMBERS_AT_ONCE = 4_000_000  # of a chunk of resamples: 32 MB


@dataclasses.dataclass(frozen=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class SeedDifference:
    """The mean difference over seeds, with its interval. The p-value is None if nothing varies over the seeds."""

    mean: float
    interval: Interval
    p_value: float | None
    paired: bool


def mean_score(sums: Array, score: Score) -> float:
    """The score of a system, the mean of its models, from the sums of its units (M, N, K)."""
    return float(score(sums.sum(1)).mean())


def bootstrap(systems: Sequence[Array], score: Score, resamples: int, seed: int) -> list[Array]:
    """The scores of systems, R each, on resamples of the units, which all systems share.

    Source: the bootstrap of Efron and Tibshirani (1993), paired as by Koehn (2004), "Statistical Significance Tests for
    Machine Translation Evaluation".

    Arguments:
        systems: (M, N, K) each; M may differ.
        resamples: R.
    """
    generator = np.random.default_rng(seed)
    num_units = systems[0].shape[1]
    columns = [_by_unit(system) for system in systems]
    scores: list[list[Array]] = [[] for _ in systems]
    for size in _chunks(resamples, num_units):
        drawn = generator.integers(0, num_units, (size, num_units)) + num_units * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * num_units).reshape(size, num_units).astype(np.float64)
        for kept, system, column in zip(scores, systems, columns, strict=True):
            sums = (times @ column).reshape(size, len(system), -1)  # (r, M, K)
            kept.append(score(sums).mean(1))
    return [np.concatenate(kept) for kept in scores]


def percentile_interval(values: Array) -> Interval:
    """From the percentiles 2.5 to 97.5 of a bootstrap."""
    low, high = np.percentile(values, [50 * (1 - _CONFIDENCE), 50 * (1 + _CONFIDENCE)])
    return Interval(float(low), float(high))


def exact_interval(right: int, count: int) -> Interval:
    """The interval of an accuracy in percent, of `count` labels of which some are right.

    Source: Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
    binomial".
    """
    from scipy import stats

    found = stats.binomtest(right, count).proportion_ci(_CONFIDENCE)
    return Interval(100 * float(found.low), 100 * float(found.high))


def equal_below(*scores: float) -> float:
    """The largest difference of scores of this size that comes from rounding. An error may have any unit."""
    return _EQUAL * max(map(abs, scores))


def randomization_p(one: Array, other: Array, score: Score, resamples: int, seed: int) -> float:
    """The two-sided p-value of a paired approximate randomization: how often the difference of the scores is as large
    if, for each unit, the two systems' outputs are swapped at random.

    Source: Noreen (1989), "Computer-Intensive Methods for Testing Hypotheses"; Yeh (2000), "More accurate tests for the
    statistical significance of result differences".

    Arguments:
        one, other: (M, N, K) each; M may differ.
        resamples: R.
    """
    generator = np.random.default_rng(seed)
    scores = mean_score(one, score), mean_score(other, score)
    first, second = _paired(one, other)
    change = _by_unit(second - first)
    change = change[change.any(1)]  # the other units make no difference
    totals = first.sum(1), second.sum(1)  # (M, K) each
    differences = [np.zeros(0)]
    for size in _chunks(resamples, len(change)):
        swapped = generator.integers(0, 2, (size, len(change)), dtype=np.int8).astype(np.float64)
        moved = (swapped @ change).reshape(size, len(first), -1)  # (r, M, K)
        differences.append((score(totals[0] + moved) - score(totals[1] - moved)).mean(1))
    is_as_large = np.abs(np.concatenate(differences)) >= abs(scores[0] - scores[1]) - equal_below(*scores)
    return (int(is_as_large.sum()) + 1) / (resamples + 1)  # the observed swap counts as one of them (Noreen 1989)


def unit_gains(one: Array, other: Array, score: Score) -> Array:
    """By how much the score of `one` changes if a unit's sums are those of `other`, for each unit: (N,).

    Unlike the score of a single unit, this is also defined for a unit with nothing to find, and it weighs a unit as the
    score does.

    Arguments:
        one, other: (M, N, K) each; M may differ.
    """
    first, second = _paired(one, other)
    totals = first.sum(1, keepdims=True)  # (M, 1, K)
    return (score(totals + (second - first)) - score(totals)).mean(0)


def seed_difference(one: Sequence[float], other: Sequence[float], *, paired: bool) -> SeedDifference | None:
    """How much the mean of `other` is above that of `one`, with Student's interval and test: of the differences if the
    scores are paired, otherwise Welch's. None if one of them has fewer than two scores.
    """
    from scipy import stats

    if min(len(one), len(other)) < 2:
        return None
    mean = float(np.mean(other) - np.mean(one))
    varied = [np.subtract(other, one)] if paired else [np.array(one), np.array(other)]
    if max(map(np.ptp, varied)) <= equal_below(*one, *other):
        return SeedDifference(mean, Interval(mean, mean), None, paired)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of values that are nearly alike
        result = stats.ttest_rel(other, one) if paired else stats.ttest_ind(other, one, equal_var=False)
    low, high = result.confidence_interval(_CONFIDENCE)
    return SeedDifference(mean, Interval(float(low), float(high)), float(result.pvalue), paired)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected for their number.

    Source: Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure".
    """
    order = np.argsort(p_values)
    corrected = np.sort(p_values) * np.arange(len(p_values), 0, -1)
    result = np.empty(len(p_values))
    result[order] = np.minimum(1, np.maximum.accumulate(corrected))
    return [float(value) for value in result]


def _paired(one: Array, other: Array) -> tuple[Array, Array]:
    """Models of two systems in pairs, those with the same number together. If one has more, those of both are repeated
    until each occurs equally often.
    """
    numbers = np.arange(math.lcm(len(one), len(other)))
    return one[numbers % len(one)], other[numbers % len(other)]


def _by_unit(system: Array) -> Array:
    """(N, M * K) from (M, N, K)."""
    return system.transpose(1, 0, 2).reshape(system.shape[1], -1)


def _chunks(resamples: int, num_units: int) -> Iterator[int]:
    """How many resamples are made at once, so that memory is bounded."""
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, num_units))
    for begin in range(0, resamples, at_once):
        yield min(at_once, resamples - begin)
