"""Accuracy: of one label for each example, or of one for each token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.metrics.metric import Metric, percentage


class Accuracy(Metric):
    """The share of labels that are right, under the name `accuracy`.

    Arguments:
        field: the key of the label, in predictions and in examples. If its value is a list, with a label for each
            token, every token counts once.
    """

    main: ClassVar[str] = "accuracy"
    field = "label"

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        predicted, gold = _labels(prediction[self.field]), _labels(example[self.field])
        self._correct += sum(one == other for one, other in zip(predicted, gold, strict=True))
        self._total += len(gold)

    def sums(self) -> Sequence[float]:
        """The labels that are right, and all labels."""
        return self._correct, self._total

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        return {"accuracy": percentage(sums[..., 0], sums[..., 1])}

    def floor(self, examples: Iterable[Mapping[str, Any]]) -> float:
        """The share of the most frequent label."""
        counts = Counter(label for example in examples for label in _labels(example[self.field]))
        return float(percentage(max(counts.values(), default=0), counts.total()))

    def reset(self) -> None:
        self._correct = self._total = 0


def _labels(value: Any) -> list[Any]:
    """The labels of an example: one, or one for each token."""
    return value if isinstance(value, list) else [value]
