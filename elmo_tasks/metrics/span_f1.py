"""Span F1 for named entities and chunks, equal to conlleval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from elmo_tasks.metrics.metric import Metric, f1_score, percentage
from elmo_tasks.text.tag_schemes import spans_of_tags

# Token accuracy is computed on IOB2 tags, so that it does not depend on whether a model learns IOB2 or BIOUL.
_IOB2_LETTERS = str.maketrans("ESLU", "IBIB")


def _iob2_letter(tag: str) -> str:
    return tag[0].translate(_IOB2_LETTERS) + tag[1:]


class SpanF1(Metric):
    """Precision, recall and F1 of exact labelled spans, over all types and by type, and token accuracy.

    Predictions and examples hold their tags, in any scheme that `spans_of_tags` reads, under `field`. The scores are
    those of the CoNLL-2000 to CoNLL-2003 shared tasks' `conlleval`. BIOUL tags are scored as their IOB2 form would be.

    Names of the scores: `f1`, `precision`, `recall`, `accuracy`, and for each type `f1/PER` and so on.
    """

    def __init__(self, field: str = "tags") -> None:
        self.field = field
        self.reset()

    def update(self, predictions: Sequence[Mapping[str, Any]], examples: Sequence[Mapping[str, Any]]) -> None:
        for prediction, example in zip(predictions, examples, strict=True):
            predicted_tags, gold_tags = prediction[self.field], example[self.field]
            pairs = zip(predicted_tags, gold_tags, strict=True)
            self._correct_tokens += sum(_iob2_letter(predicted) == _iob2_letter(gold) for predicted, gold in pairs)
            self._tokens += len(gold_tags)
            found, gold = set(spans_of_tags(predicted_tags)), set(spans_of_tags(gold_tags))
            self._found.update(label for label, _, _ in found)
            self._gold.update(label for label, _, _ in gold)
            self._correct.update(label for label, _, _ in found & gold)

    def compute(self) -> dict[str, float]:
        precision, recall, f1 = self._scores(self._correct.total(), self._found.total(), self._gold.total())
        accuracy = percentage(self._correct_tokens, self._tokens)
        scores = {"f1": f1, "precision": precision, "recall": recall, "accuracy": accuracy}
        for label in sorted(self._gold.keys() | self._found.keys()):
            precision, recall, f1 = self._scores(self._correct[label], self._found[label], self._gold[label])
            scores |= {f"f1/{label}": f1, f"precision/{label}": precision, f"recall/{label}": recall}
        return scores

    def reset(self) -> None:
        self._tokens = 0
        self._correct_tokens = 0
        self._gold: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._correct: Counter[str] = Counter()

    @staticmethod
    def _scores(correct: int, found: int, gold: int) -> tuple[float, float, float]:
        precision, recall = percentage(correct, found), percentage(correct, gold)
        return precision, recall, f1_score(precision, recall)
