"""Accuracy of labels, and F1 of sets of labels: of all together (micro), the mean of each (macro), and of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.metrics.metric import LabelCounts, Metric, f1_score, f1_scores, percentage


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


class LabelSetF1(Metric):
    """Precision, recall and F1 of the labels of each example, and the share of sets that are right as a whole.

    Names of the scores: `micro_f1`, `micro_precision`, `micro_recall`, `macro_f1`, `exact_match`, and `f1/LABEL` and so
    on. Labels that are neither gold nor predicted do not count in `macro_f1`; the others are scored as scikit-learn's
    `f1_score` with `zero_division=0` scores them.

    Predictions may have `probabilities`, a dict of all labels: `choose_threshold` needs them.
    """

    main: ClassVar[str] = "micro_f1"
    field = "labels"

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        found, gold = set(prediction[self.field]), set(example[self.field])
        self._labels.add({(label,) for label in found}, {(label,) for label in gold})
        self._exact += found == gold
        self._total += 1
        if "probabilities" in prediction:
            self._scored.append((prediction["probabilities"], gold))

    def choose_threshold(self) -> float:
        """The threshold of the probabilities with the best micro F1, halfway between two of them."""
        from sklearn.metrics import precision_recall_curve

        scored = self._scored
        scores = np.array([each for probabilities, _ in scored for each in probabilities.values()])
        is_gold = np.array([label in gold for probabilities, gold in scored for label in probabilities])
        precision, recall, thresholds = precision_recall_curve(is_gold, scores)
        best = int(np.argmax(f1_score(precision[:-1], recall[:-1])))
        threshold = float(thresholds[best] + (thresholds[best - 1] if best else 0)) / 2
        self.reset()
        for probabilities, gold in scored:
            labels = [label for label, probability in probabilities.items() if probability >= threshold]
            self._add({self.field: labels}, {self.field: gold})
        return threshold

    def sums(self) -> Sequence[float]:
        """The labels that are correct, found and gold, the sets that are right, and all sets."""
        return *self._labels.sums(), self._exact, self._total

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        correct, found, gold, exact, total = np.moveaxis(sums, -1, 0)
        micro = {f"micro_{name}": value for name, value in f1_scores(correct, found, gold).items()}
        return {**micro, "exact_match": percentage(exact, total)}

    def floor(self, examples: Iterable[Mapping[str, Any]]) -> float:
        """The micro F1 of always giving only the most frequent label."""
        sets = [set(example[self.field]) for example in examples]
        counts = Counter(label for labels in sets for label in labels)
        return float(percentage(2 * max(counts.values(), default=0), len(sets) + counts.total()))

    def compute(self) -> dict[str, float]:
        by_label = self._labels.by_label()
        of_labels = [value for name, value in by_label.items() if name.startswith("f1/")]
        return {**self.overall(), "macro_f1": sum(of_labels) / max(1, len(of_labels)), **by_label}

    def reset(self) -> None:
        self._labels = LabelCounts()
        self._exact = self._total = 0
        self._scored: list[tuple[Mapping[str, float], set[str]]] = []
