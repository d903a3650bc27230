"""The sentences of the package among which neighbours are looked for."""

from __future__ import annotations

import functools
import re

from elmo_tasks.sample_data import SENTENCES

TEXT = SENTENCES.read_text(encoding="utf-8")


def test_sentences_are_many_and_no_two_are_the_same() -> None:
    sentences = [line for line in TEXT.splitlines() if line]
    assert len(sentences) == 2000
    assert len({" ".join(re.findall(r"\w+", sentence.lower())) for sentence in sentences}) == 2000
    assert all(8 <= len(sentence.split()) <= 20 for sentence in sentences)
    assert TEXT.isascii()


def test_each_paragraph_is_about_a_word() -> None:
    *paragraphs, _ = TEXT.split("\n\n")
    shared = [
        functools.reduce(set.__and__, (set(re.findall(r"\w+", line.lower())) for line in paragraph.splitlines()))
        for paragraph in paragraphs
    ]
    assert len(paragraphs) > 100
    assert all(len(words - {"a", "the"}) == 1 for words in shared)
    assert min(len(paragraph.splitlines()) for paragraph in paragraphs) > 12
