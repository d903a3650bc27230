"""Exact match and F1 of answers, equal to SQuAD's evaluate-v1.1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.metrics.metric import Metric, percentage

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """The text that the scorer compares: in lower case, without ASCII punctuation, articles and extra white space.

    Punctuation goes first and leaves no gap: `(A) Day-long` becomes `daylong`.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


class SquadScores(Metric):
    """The shares of answers that match exactly, `exact_match`, and the mean F1 of their words, `f1`.

    Source: Rajpurkar et al. (2016), section 6.1, and the data set's scorer, evaluate-v1.1. Both are computed on
    normalized texts; of a question's gold answers, the one with the best score counts. As in the scorer, an answer that
    has no words after normalization has F1 0, even against the same answer.

    Predictions hold their text under `answer`, or None for a question that is not answered, which scores 0. Examples
    hold all gold answers, at least one, under `answers`.
    """

    main: ClassVar[str] = "f1"
    field = "answer"

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        self._questions += 1
        if prediction["answer"] is None:
            return
        predicted = normalize_answer(prediction["answer"])
        gold = [normalize_answer(answer) for answer in example["answers"]]
        self._exact_matches += predicted in gold
        self._f1 += max(_word_f1(predicted.split(), answer.split()) for answer in gold)

    def right(self, example: Mapping[str, Any]) -> dict[str, Any]:
        return {"answer": example["answers"][0]}

    def sums(self) -> Sequence[float]:
        """The answers that match exactly, the sum of all F1, from 0 to 1, and the questions."""
        return self._exact_matches, self._f1, self._questions

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        exact_matches, f1, questions = np.moveaxis(sums, -1, 0)
        return {"exact_match": percentage(exact_matches, questions), "f1": percentage(f1, questions)}

    def reset(self) -> None:
        self._questions = self._exact_matches = 0
        self._f1 = 0.0


def _word_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """The F1, from 0 to 1, of the words as bags."""
    if not (common := (Counter(predicted) & Counter(gold)).total()):
        return 0.0
    precision, recall = common / len(predicted), common / len(gold)
    return 2 * precision * recall / (precision + recall)
