"""The base of all metrics: predictions go in batch by batch, percentages come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any


class Metric(ABC):
    """A scorer that adds up counts over batches and keeps no predictions.

    `predictions` are the results of a model's `decode`, `examples` the gold rows of the data set in the same order.
    """

    @abstractmethod
    def update(self, predictions: Sequence[Mapping[str, Any]], examples: Sequence[Mapping[str, Any]]) -> None:
        """Adds a batch of predictions and their gold examples.

        Raises:
            ValueError: the two do not have the same length.
        """

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The scores of everything added since the last `reset`, by name: percentages, not rounded.

        Names that depend on the data are `name/label`. All others exist from the start, with any value.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forgets everything added."""


def percentage(part: float, whole: float) -> float:
    """`part` of `whole` in percent; 0 if `whole` is 0, as in the scorers of the shared tasks."""
    return 100 * part / whole if whole else 0.0


def f1_score(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall; 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
