from __future__ import annotations

import pytest

from elmo_tasks.pretraining.output_vocabulary import most_frequent


@pytest.mark.parametrize(
    ("size", "min_count", "words"),
    [(None, 1, ["a", "b", "c"]), (5, 1, ["a", "b"]), (None, 2, ["a", "b"]), (4, 2, ["a"]), (3, 1, [])],
)
def test_the_most_frequent_words_and_the_special_ones_among_them(
    size: int | None, min_count: int, words: list[str]
) -> None:
    assert most_frequent(["a", "b", "c"], [3, 2, 1], size, min_count).words == ("<S>", "</S>", "<UNK>", *words)
