"""Errors of answers to questions: how they differ from the gold answers, and for which questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elmo_tasks.evaluation.breakdowns import LENGTHS, BucketKey, ranged
from elmo_tasks.metrics.squad import normalize_answer

KINDS = ("right", "too long", "too short", "overlapping", "elsewhere", "no answer")
UNANSWERABLE = "not answerable"  # where there are questions without an answer
_QUESTION_WORDS = ("what", "which", "who", "whom", "whose", "when", "where", "why", "how")


def answer_kind(answer: str | None, gold: Sequence[str]) -> str:
    """How an answer differs from the gold ones, by the words that the scorer compares.

    `right`: an exact match of the scorer; `too long`: it contains a gold answer; `too short`: a gold answer contains
    it; `overlapping`: it has a word of a gold answer; `elsewhere`: it has none; `not answerable`: there is none.
    """
    if not gold:
        return UNANSWERABLE if answer else "right"
    if not answer:
        return "no answer"
    words, golds = normalize_answer(answer).split(), [normalize_answer(each).split() for each in gold]
    if words in golds:
        return "right"
    if any(_contains(words, each) for each in golds if each):
        return "too long"
    if any(_contains(each, words) for each in golds if words):
        return "too short"
    return "overlapping" if any({*words} & {*each} for each in golds) else "elsewhere"


def question_buckets(example: Mapping[str, Any]) -> dict[str, BucketKey]:
    """The buckets of a question: its first question word, and the length of its shortest gold answer in tokens."""
    tokens = [token.lower() for token in example["question_tokens"]]
    word = next((token for token in tokens if token in _QUESTION_WORDS), "other")
    if word == "how" and (after := tokens[tokens.index("how") + 1 :][:1]) in (["many"], ["much"]):
        word = f"how {after[0]}"
    lengths = [last - first + 1 for first, last in example["answer_spans"]]
    length = ranged(min(lengths), LENGTHS) if lengths else BucketKey(-1, "no answer")
    return {"question word": BucketKey(word == "other", word), "length of the answer": length}


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))
