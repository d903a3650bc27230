"""Errors of answers to questions: how they differ from the gold answers."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_tasks.metrics.squad import normalize_answer

KINDS = ("right", "too long", "too short", "overlapping", "elsewhere", "no answer")
UNANSWERABLE = "not answerable"  # where there are questions without an answer


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


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))
