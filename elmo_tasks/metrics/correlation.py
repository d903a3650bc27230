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

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        self._pairs.append((float(prediction[self.field]), float(example[self.field])))

    def sums(self) -> Sequence[float]:
        """The number of pairs, and the sums of predicted p and gold g: of p, g, p², g² and pg."""
        return _sums(*np.array(self._pairs).reshape(-1, 2).T)

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        count, predicted, gold, predicted_squares, gold_squares, products = np.moveaxis(sums, -1, 0)
        variances = _variance(count, predicted, predicted_squares) * _variance(count, gold, gold_squares)
        covariance = count * products - predicted * gold
        error = quotient(predicted_squares - 2 * products + gold_squares, count)
        return {"pearson": 100 * quotient(covariance, np.sqrt(variances)), "mse": error}

    def compute(self) -> dict[str, float]:
        from scipy.stats import rankdata

        predicted, gold = np.array(self._pairs).reshape(-1, 2).T
        ranked = self.scores(np.array(_sums(rankdata(predicted), rankdata(gold))))
        return {**self.overall(), "spearman": float(ranked["pearson"])}

    def reset(self) -> None:
        self._pairs: list[tuple[float, float]] = []


def _sums(predicted: ArrayLike, gold: ArrayLike) -> list[float]:
    p, g = np.asarray(predicted, np.float64), np.asarray(gold, np.float64)
    return [float(len(p)), *(float(each.sum()) for each in (p, g, p * p, g * g, p * g))]


def _variance(count: _Array, total: _Array, squares: _Array) -> _Array:
    """count² times the variance of numbers with these sums; 0 where only rounding makes it larger."""
    variance = count * squares - total**2
    return np.where(variance > _ROUNDING * count * squares, variance, 0.0)
