"""What every metric does: counts go in batch by batch, percentages come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any


class Metric(ABC):
    """A scorer that adds up counts over batches, so that it never holds a data set's predictions.

    `predictions` are what a model's `decode` returns, `examples` the gold rows of the data set, in the same order.
    """

    @abstractmethod
    def update(self, predictions: Sequence[Mapping[str, Any]], examples: Sequence[Mapping[str, Any]]) -> None:
        """Adds a batch of predictions and the gold examples that they are for.

        Raises:
            ValueError: the two do not have the same length.
        """

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The scores of all that was added since the last `reset`, in percent, not rounded, by name.

        Names that depend on the data are `name/label`. All others are there, with any value, before something is added.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forgets all that was added."""


def percentage(part: float, whole: float) -> float:
    """`part` of `whole` in percent; 0 where there is no whole, as the scorers of the shared tasks have it."""
    return 100 * part / whole if whole else 0.0


def f1_score(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall; 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
