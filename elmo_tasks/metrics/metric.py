"""The base of all metrics: predictions go in batch by batch, percentages come out.

# K sums of a metric
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Metric(ABC):
    """A scorer that adds up counts over batches and keeps no predictions.

    `predictions` are the results of a model's `decode`, `examples` the gold rows of the data set in the same order.

    The sums of parts of the data add up to those of the whole, so `scores` also gives the scores of any sample of the
    parts. Tests of significance use that.

    Attributes:
        main: the name of the score by which systems are compared.
        lower_is_better: the names of the scores of which a lower value is better, such as errors.
        field: the key of a prediction and of an example that the metric reads; a class has its usual one.
    """

    main: ClassVar[str]
    lower_is_better: ClassVar[frozenset[str]] = frozenset()
    field: str

    def __init__(self, field: str | None = None) -> None:
        if field is not None:
            self.field = field
        self.reset()

    def update(self, predictions: Sequence[Mapping[str, Any]], examples: Sequence[Mapping[str, Any]]) -> None:
        """Adds a batch of predictions and their gold examples.

        Raises:
            ValueError: the two do not have the same length.
        """
        for prediction, example in zip(predictions, examples, strict=True):
            self._add(prediction, example)

    def prepare(self, examples: Sequence[Mapping[str, Any]]) -> None:  # noqa: B027 - most metrics need nothing
        """Takes from all gold examples what the sums of their parts must have in common; by default nothing.

        Without it, the sums add up for metrics that count, but not for those that measure numbers from their mean.
        """

    @abstractmethod
    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        """Adds one prediction and its gold example."""

    @abstractmethod
    def sums(self) -> Sequence[float]:
        """The K counts, of everything added since the last `reset`, that the overall scores are computed from."""

    @classmethod
    @abstractmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The overall scores by name, each of shape (...), from `sums` of shape (..., K)."""

    def overall(self) -> dict[str, float]:
        """The overall scores of everything added since the last `reset`."""
        scores = self.scores(np.array(self.sums(), dtype=np.float64))
        return {name: float(value) for name, value in scores.items()}

    def right(self, example: Mapping[str, Any]) -> dict[str, Any]:
        """A prediction that is right."""
        return {self.field: example[self.field]}

    def floor(self, examples: Iterable[Mapping[str, Any]]) -> float:
        """The main score that a model can have on these examples without having learned anything."""
        return 0.0

    def choose_threshold(self) -> float:
        """Chooses the threshold with the best main score on everything added, with which `compute` then scores it.

        Only for models with a `threshold`; see `TaskModel`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not choose a threshold")

    def compute(self) -> dict[str, float]:
        """The scores of everything added since the last `reset`, by name: percentages, not rounded, except for support.

        Names that depend on the data are `name/label`. All others exist from the start, with any value.
        """
        return self.overall()

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

    def sums(self, without: str | None = None) -> tuple[int, ...]:
        """How many items are correct, found and gold, of all labels or of all but one."""
        counts = (self._correct, self._found, self._gold)
        return tuple(each.total() - (each[without] if without else 0) for each in counts)

    def by_label(self) -> dict[str, float]:
        """`f1/LABEL`, `precision/LABEL`, `recall/LABEL` and `support/LABEL`, the number of gold items, for each label,
        in alphabetical order.
        """
        scores: dict[str, float] = {}
        for label in sorted(self._gold.keys() | self._found.keys()):
            values = f1_scores(self._correct[label], self._found[label], self._gold[label])
            scores |= {f"{name}/{label}": float(value) for name, value in values.items()}
            scores[f"support/{label}"] = self._gold[label]
        return scores


def f1_scores(correct: ArrayLike, found: ArrayLike, gold: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """`f1`, `precision` and `recall` in percent, from numbers or arrays of items."""
    precision, recall = percentage(correct, found), percentage(correct, gold)
    return {"f1": f1_score(precision, recall), "precision": precision, "recall": recall}


def quotient(part: ArrayLike, whole: ArrayLike) -> NDArray[np.float64]:
    """`part` / `whole`, of numbers or arrays of the same shape; 0 where `whole` is 0, as in the official scorers."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole != 0)


def percentage(part: ArrayLike, whole: ArrayLike) -> NDArray[np.float64]:
    """`part` of `whole` in percent; see `quotient`."""
    return quotient(100 * np.asarray(part, np.float64), whole)


def f1_score(precision: NDArray[np.float64], recall: NDArray[np.float64]) -> NDArray[np.float64]:
    """The harmonic mean of precision and recall; 0 where both are 0."""
    return quotient(2 * precision * recall, precision + recall)
