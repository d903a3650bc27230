"""The base of all metrics: predictions go in batch by batch, percentages come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any


class Metric(ABC):
    """A scorer that adds up counts over batches and keeps no predictions.

    `predictions` are the results of a model's `decode`, `examples` the gold rows of the data set in the same order.
    """

    def __init__(self) -> None:
        self.reset()

    def update(self, predictions: Sequence[Mapping[str, Any]], examples: Sequence[Mapping[str, Any]]) -> None:
        """Adds a batch of predictions and their gold examples.

        Raises:
            ValueError: the two do not have the same length.
        """
        for prediction, example in zip(predictions, examples, strict=True):
            self._add(prediction, example)

    @abstractmethod
    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        """Adds one prediction and its gold example."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The scores of everything added since the last `reset`, by name: percentages, not rounded, except for support.

        Names that depend on the data are `name/label`. All others exist from the start, with any value.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forgets everything added."""


class LabelCounts:
    """How many labelled items, such as spans, are predicted, gold and both, by label. An item begins with its label."""

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()
        self._gold: Counter[str] = Counter()
        self._correct: Counter[str] = Counter()

    def add(self, found: Set[tuple[Any, ...]], gold: Set[tuple[Any, ...]]) -> None:
        for counts, items in ((self._found, found), (self._gold, gold), (self._correct, found & gold)):
            counts.update(label for label, *_ in items)

    def overall(self, without: str | None = None) -> dict[str, float]:
        """`f1`, `precision` and `recall` over all labels, or over all but one."""
        counts = (self._correct, self._found, self._gold)
        return self._scores("", *(each.total() - (each[without] if without else 0) for each in counts))

    def by_label(self) -> dict[str, float]:
        """`f1/LABEL`, `precision/LABEL`, `recall/LABEL` and `support/LABEL`, the number of gold items, for each label,
        in alphabetical order.
        """
        scores: dict[str, float] = {}
        for label in sorted(self._gold.keys() | self._found.keys()):
            scores |= self._scores(f"/{label}", self._correct[label], self._found[label], self._gold[label])
            scores[f"support/{label}"] = self._gold[label]
        return scores

    @staticmethod
    def _scores(ending: str, correct: int, found: int, gold: int) -> dict[str, float]:
        precision, recall = percentage(correct, found), percentage(correct, gold)
        f1 = f1_score(precision, recall)
        return {f"f1{ending}": f1, f"precision{ending}": precision, f"recall{ending}": recall}


def percentage(part: float, whole: float) -> float:
    """`part` of `whole` in percent; 0 if `whole` is 0, as in the scorers of the shared tasks."""
    return 100 * part / whole if whole else 0.0


def f1_score(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall; 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
