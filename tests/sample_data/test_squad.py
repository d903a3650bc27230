"""The sample data for reading: its format, and that many spans would do as an answer."""

from __future__ import annotations

import collections
import re

from elmo_tasks.tasks.reading import character_span
from tests.sample_data.every import read


def test_sizes() -> None:
    for split, passages in enumerate((200, 40)):
        examples = read("squad", split)
        counts = collections.Counter(example["passage"] for example in examples)
        assert len(counts) == passages
        assert set(counts.values()) == {3, 4, 5}  # questions


def test_answers_are_whole_tokens() -> None:
    for split in range(2):
        for example in read("squad", split):
            (answer,), (span,) = example["answers"], example["answer_spans"]
            start, end = character_span(example, *span)
            assert example["passage"][start:end] == answer


def test_every_kind_of_question_is_frequent() -> None:
    counts = collections.Counter(example["question"].split()[0] for example in read("squad"))
    assert set(counts) == {"Who", "What", "Where", "When"}
    assert min(counts.values()) > 150


def test_a_passage_has_several_spans_of_an_answers_kind() -> None:
    examples = read("squad")
    years = [example for example in examples if example["answers"][0].isdigit()]
    assert all(len(set(re.findall(r"\b1\d\d\d\b", example["passage"]))) >= 3 for example in years)
    # Nor does the passage tell what is asked of it: the same one has other answers to other questions.
    answers = collections.defaultdict(set)
    for example in examples:
        answers[example["passage"]].add(example["answers"][0])
    assert all(len(found) >= 3 for found in answers.values())


def test_a_third_of_the_questions_of_version_2_are_about_what_nobody_did() -> None:
    examples = read("squad2")
    unanswerable = [example for example in examples if not example["answers"]]
    assert 0.25 < len(unanswerable) / len(examples) < 0.4
    asked = {"Who": "year", "What": "year", "Where": "person", "When": "person"}
    for example in unanswerable:
        words = example["question"].removesuffix("?").split()
        changed = words[-1] if asked[words[0]] == "year" else words[2]
        assert changed not in example["passage"]
