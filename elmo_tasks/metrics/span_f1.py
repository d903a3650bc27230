"""Span F1 for named entities and chunks, equal to conlleval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.metrics.metric import LabelCounts, Metric, f1_scores, percentage
from elmo_tasks.text.tag_schemes import checked_span_tags

# Token accuracy is computed on IOB2 tags, so that it does not depend on whether a model learns IOB2 or BIOUL.
_IOB2_LETTERS = str.maketrans("ESLUM", "IBIBI")
_BIOES_LETTERS = str.maketrans("LUM", "ESI")  # which seqeval knows


def _tags_in(letters: dict[int, int], tags: Sequence[str]) -> list[str]:
    return [tag[0].translate(letters) + tag[1:] for tag in tags]


class SpanF1(Metric):
    """Precision, recall and F1 of exact labelled spans, over all types and by type, and token accuracy.

    Predictions and examples hold their tags under `field`, in any scheme; seqeval reads their spans. The scores are
    those of the CoNLL-2000 to CoNLL-2003 shared tasks' `conlleval`. A valid sequence in another scheme is
    scored as its IOB2 form would be.

    Names of the scores: `f1`, `precision`, `recall`, `accuracy`, and for each type `f1/PER` and so on.
    """

    main: ClassVar[str] = "f1"
    field = "tags"

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        from seqeval.metrics.sequence_labeling import get_entities  # here, since it imports scikit-learn

        both = [checked_span_tags(each[self.field]) for each in (prediction, example)]
        pairs = zip(*(_tags_in(_IOB2_LETTERS, tags) for tags in both), strict=True)
        self._correct_tokens += sum(predicted == gold for predicted, gold in pairs)
        self._tokens += len(both[1])
        self._spans.add(*(set(get_entities(_tags_in(_BIOES_LETTERS, tags))) for tags in both))

    def sums(self) -> Sequence[float]:
        """The spans that are correct, found and gold, the tokens whose tags are right, and all tokens."""
        return *self._spans.sums(), self._correct_tokens, self._tokens

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        correct, found, gold, correct_tokens, tokens = np.moveaxis(sums, -1, 0)
        return {**f1_scores(correct, found, gold), "accuracy": percentage(correct_tokens, tokens)}

    def compute(self) -> dict[str, float]:
        return {**self.overall(), **self._spans.by_label()}

    def reset(self) -> None:
        self._tokens = self._correct_tokens = 0
        self._spans = LabelCounts()
