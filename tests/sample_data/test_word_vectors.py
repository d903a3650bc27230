"""The word vectors of the sample data, by the formula of mutual information written down word by word."""

from __future__ import annotations

import collections
import math
import random

import pytest

from elmo_tasks.sample_data.word_vectors import word_vectors_text

CORPUS = [["The", "dog", "ran"], ["the", "cat"], ["A", "dog"], ["cat"]]


def test_vectors_are_projections_of_the_information_about_neighbours() -> None:
    words = ["cat", "dog", "the", "a", "ran"]  # by frequency, then by the alphabet
    counts: collections.Counter[tuple[str, tuple[str, str]]] = collections.Counter()
    for sentence in CORPUS:
        tokens = ["", *(token.lower() for token in sentence), ""]
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
            counts[token, ("left", before)] += 1
            counts[token, ("right", after)] += 1
    contexts = [(side, word) for side in ("left", "right") for word in [*words, ""]]
    generator = random.Random(0)
    signs = {context: [generator.choice((-1, 1)) for _ in range(3)] for context in contexts}
    for line, word in zip(word_vectors_text(CORPUS, 3).splitlines(), words, strict=True):
        expected = [0.0] * 3
        for context in contexts:
            of_word = sum(count for (each, _), count in counts.items() if each == word)
            of_context = sum(count for (_, each), count in counts.items() if each == context)
            if together := counts[word, context]:
                information = max(0.0, math.log(together * counts.total() / (of_word * of_context)))
                rounded = round(information * 1024) / 1024
                expected = [value + 0.05 * rounded * sign for value, sign in zip(expected, signs[context], strict=True)]
        name, *numbers = line.split(" ")
        assert name == word
        assert [float(number) for number in numbers] == pytest.approx(expected, abs=5.1e-5)


def test_a_vector_has_fifty_numbers_of_four_digits() -> None:
    (line,) = word_vectors_text([["one"]]).splitlines()
    assert line == "one" + " 0.0000" * 50  # its neighbours are the same as everybody's
