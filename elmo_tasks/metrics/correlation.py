"""The correlation of predicted and gold numbers, and their mean squared error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elmo_tasks.metrics.metric import Metric, quotient

_Array = NDArray[np.float64]
_ROUNDING = 1e-13  # of a variance, as a share of the sum of squares: all numbers are the same


class Correlation(Metric):
    """Pearson's and Spearman's correlation in percent, and the mean squared error in the unit of the data, squared.

    Names of the scores: `pearson`, `spearman`, `mse`. A correlation with numbers that are all the same is 0. Equal
    numbers share their mean rank, as in SciPy. The ranks need all numbers, so that two of each example are kept.
    """

    main: ClassVar[str] = "pearson"
    lower_is_better: ClassVar[frozenset[str]] = frozenset({"mse"})
    field = "score"
    _origins: tuple[float, float] | None = None

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        self._pairs.append((float(prediction[self.field]), float(example[self.field])))

    def prepare(self, examples: Sequence[Mapping[str, Any]]) -> None:
        """Takes the mean of the gold numbers as the one from which all numbers are measured."""
        self._origins = (float(np.mean([float(example[self.field]) for example in examples] or [0.0])),) * 2

    def sums(self) -> Sequence[float]:
        """The number of pairs, and the sums of predicted p and gold g: of p, g, p², g², pg and (p - g)².

        p and g are measured from the origin of `prepare`, or without one from their own means: sums of squares of large
        numbers have no digits left for what makes the numbers differ. (p - g)² needs no origin.
        """
        pairs = np.array(self._pairs, np.float64).reshape(-1, 2)
        origins = self._origins or (pairs.mean(0) if len(pairs) else 0.0)
        return _sums(pairs, origins)

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        count, predicted, gold, predicted_squares, gold_squares, products, errors = np.moveaxis(sums, -1, 0)
        variances = _variance(count, predicted, predicted_squares) * _variance(count, gold, gold_squares)
        covariance = count * products - predicted * gold
        return {"pearson": 100 * quotient(covariance, np.sqrt(variances)), "mse": quotient(errors, count)}

    def compute(self) -> dict[str, float]:
        from scipy.stats import rankdata

        ranks = rankdata(np.array(self._pairs, np.float64).reshape(-1, 2), axis=0)
        ranked = self.scores(np.array(_sums(ranks, (len(ranks) + 1) / 2)))
        return {**self.overall(), "spearman": float(ranked["pearson"])}

    def reset(self) -> None:
        self._pairs: list[tuple[float, float]] = []


def _sums(pairs: _Array, origins: ArrayLike) -> list[float]:
    """The sums of pairs (N, 2), measured from two origins."""
    predicted, gold = (pairs - np.asarray(origins, np.float64)).T
    error = pairs[:, 0] - pairs[:, 1]
    parts = (predicted, gold, predicted**2, gold**2, predicted * gold, error**2)
    return [float(len(pairs)), *(float(each.sum()) for each in parts)]


def _variance(count: _Array, total: _Array, squares: _Array) -> _Array:
    """count² times the variance of numbers with these sums; 0 where only rounding makes it larger."""
    variance = count * squares - total**2
    return np.where(variance > _ROUNDING * count * squares, variance, 0.0)
