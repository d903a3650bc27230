"""Exact match and F1 of answers, equal to SQuAD's evaluate-v1.1, and to evaluate-v2.0 with unanswerable questions."""

from __future__ import annotations

import itertools
import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

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


class _Span(NamedTuple):
    """The best span of a question, as an answer to it."""

    no_answer_score: float
    is_text: bool  # whether it is not the empty string
    scores: tuple[float, float]  # exact match and F1, from 0 to 1


class Squad2Scores(Metric):
    """The scores of questions some of which have no answer: `exact` and `f1`, and the same of those that have one,
    `HasAns_exact` and `HasAns_f1`, and of those that have none, `NoAns_exact` and `NoAns_f1`.

    Source: Rajpurkar et al. (2018), "Know What You Don't Know: Unanswerable Questions for SQuAD", and the data set's
    scorer, evaluate-v2.0. The right answer to a question without one is the empty string. `best_exact` and `best_f1`
    are the best scores with any threshold, `best_exact_thresh` and `best_f1_thresh`: a question with a higher no-answer
    score is not answered. Scores of a group without questions are 0; the scorer leaves them out.

    Predictions hold their text under `answer`. If all of them also have a `no_answer_score` and the `best_answer`, the
    text of the best span, there are best scores. Examples hold all gold answers under `answers`.
    """

    main: ClassVar[str] = "f1"
    field = "answer"

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        gold = [text for text in map(normalize_answer, example["answers"]) if text] or [""]
        self._has_gold.append(bool(example["answers"]))
        self._given.append(_exact_and_f1(prediction["answer"], gold))
        if "no_answer_score" in prediction:
            text = prediction["best_answer"]
            self._spans.append(_Span(prediction["no_answer_score"], bool(text), _exact_and_f1(text, gold)))

    def right(self, example: Mapping[str, Any]) -> dict[str, Any]:
        return {"answer": (example["answers"] or [""])[0]}

    def floor(self, examples: Iterable[Mapping[str, Any]]) -> float:
        """The F1 of a model that answers no question."""
        has_gold = [bool(example["answers"]) for example in examples]
        return float(percentage(has_gold.count(False), len(has_gold)))

    def choose_threshold(self) -> float:
        """Chooses the threshold with the best F1.

        It is halfway between the last no-answer score that is answered and the next one, so that rounding changes no
        decision; minus infinity if it is best to answer nothing.
        """
        best, last = self._best(1)
        threshold = (last + min((each[0] for each in self._spans if each[0] > last), default=last)) / 2
        if best == self._has_gold.count(False):
            threshold = -math.inf
        self._given[:] = [
            span.scores if span.no_answer_score <= threshold else (float(not has_gold),) * 2
            for has_gold, span in zip(self._has_gold, self._spans, strict=True)
        ]
        return threshold

    def compute(self) -> dict[str, float]:
        scores = self.overall() | dict(zip(("total", "HasAns_total", "NoAns_total"), self.sums()[2::3], strict=True))
        for column, name in enumerate(("exact", "f1") if len(self._spans) == len(self._given) else ()):
            best, threshold = self._best(column)
            scores |= {f"best_{name}": float(percentage(best, len(self._spans))), f"best_{name}_thresh": threshold}
        return scores

    def _best(self, column: int) -> tuple[float, float]:
        """The best sum of exact matches (0) or F1 (1) with any threshold, and that threshold; 0.0 if none is better
        than answering nothing.

        As in the scorer, questions are answered one after the other, in the order of their no-answer scores.
        """
        pairs = sorted(zip(self._has_gold, self._spans, strict=True), key=lambda pair: pair[1].no_answer_score)
        gains = (span.scores[column] if has_gold else -span.is_text for has_gold, span in pairs)
        sums = list(itertools.accumulate(gains, initial=self._has_gold.count(False)))
        best = sums.index(max(sums))
        return sums[best], pairs[best - 1][1].no_answer_score if best else 0.0

    def sums(self) -> Sequence[float]:
        """The sums of exact matches and of F1, from 0 to 1, and the questions: of all, HasAns and NoAns."""
        sums: list[float] = []
        for kept in ({True, False}, {True}, {False}):
            group = [scores for has_gold, scores in zip(self._has_gold, self._given, strict=True) if has_gold in kept]
            sums += [sum(exact for exact, _ in group), sum(f1 for _, f1 in group), len(group)]
        return sums

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        columns = iter(np.moveaxis(sums, -1, 0))
        groups = zip(("", "HasAns_", "NoAns_"), columns, columns, columns, strict=False)
        return {
            f"{group}{name}": percentage(score, questions)
            for group, exact, f1, questions in groups
            for name, score in (("exact", exact), ("f1", f1))
        }

    def reset(self) -> None:
        self._has_gold: list[bool] = []
        self._given: list[tuple[float, float]] = []  # exact match and F1 of the answers as they are
        self._spans: list[_Span] = []


def _exact_and_f1(answer: str, gold: Sequence[str]) -> tuple[float, float]:
    """The best of each over normalized gold answers, from 0 to 1. Two answers without words are equal."""
    predicted = normalize_answer(answer)
    f1 = max(_word_f1(predicted.split(), text.split()) if predicted and text else predicted == text for text in gold)
    return float(predicted in gold), float(f1)


def _word_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """The F1, from 0 to 1, of the words as bags."""
    if not (common := (Counter(predicted) & Counter(gold)).total()):
        return 0.0
    precision, recall = common / len(predicted), common / len(gold)
    return 2 * precision * recall / (precision + recall)
