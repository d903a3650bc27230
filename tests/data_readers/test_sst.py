"""Sentiment trees: phrases chosen by the options, and trees that are drawn at random."""

import random
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.sst import Phrase, parse_tree
from elmo_tasks.errors import DataError
from tests.data_readers.readers import SST, read_text, sample

TREES = sample("sst.txt")
SENTENCES = [
    ("very positive", "The bright opera ( and/or )"),
    ("neutral", "The opera"),
    ("very negative", "Never"),
    ("negative", "The opera drags"),
]
PHRASES_OF_THE_FIRST = [
    ("very positive", "The bright opera ( and/or )"),
    ("neutral", "The"),
    ("very positive", "bright opera ( and/or )"),
    ("very positive", "bright opera"),
    ("positive", "bright"),
    ("neutral", "opera"),
    ("positive", "( and/or )"),
    ("neutral", "("),
    ("positive", "and/or )"),
    ("neutral", "and/or"),
    ("neutral", ")"),
]


def read(folder: Path, text: str = TREES, **settings: Any) -> list[tuple[str, str]]:
    return [(each["label"], " ".join(each["tokens"])) for each in read_text(folder, text, SST | settings)]


def test_every_phrase_after_its_sentence(tmp_path: Path) -> None:
    examples = read(tmp_path, subtrees=True)
    assert examples[:11] == PHRASES_OF_THE_FIRST
    assert examples[11:14] == [("neutral", "The opera"), ("neutral", "The"), ("neutral", "opera")]
    assert examples[14:16] == [("very negative", "Never"), ("negative", "The opera drags")]
    assert len(examples) == 20


def test_short_phrases_are_left_out_but_no_sentence(tmp_path: Path) -> None:
    long = [each for each in PHRASES_OF_THE_FIRST if len(each[1].split()) >= 3]
    assert len(long) == 3
    assert read(tmp_path, subtrees=True, min_length=3) == [*long, *SENTENCES[1:]]
    assert read(tmp_path, min_length=3) == SENTENCES


def test_two_classes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    labels = ["positive", "negative", "negative"]
    assert read(tmp_path, granularity=2) == list(
        zip(labels, [text for _, text in SENTENCES if text != "The opera"], strict=True)
    )
    assert "1 neutral example(s) left out" in caplog.text
    phrases = read(tmp_path, granularity=2, subtrees=True)
    all_labels = [label for label, _ in read(tmp_path, subtrees=True)]
    assert f"{all_labels.count('neutral')} neutral example(s) left out" in caplog.text
    assert [label for label, _ in phrases] == [each.removeprefix("very ") for each in all_labels if each != "neutral"]


def test_identical_phrases(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    text = TREES + "(3 (2 The) (2 opera))\n(2 (2 The) (2 opera))\n"
    examples = read(tmp_path, text, subtrees=True)
    distinct = read(tmp_path, text, subtrees=True, deduplicate=True)
    assert f"{len(examples) - len(distinct)} example(s) seen before left out" in caplog.text
    assert distinct == list(dict.fromkeys(examples))
    assert distinct.count(("neutral", "The opera")) == distinct.count(("positive", "The opera")) == 1
    assert read(tmp_path, text, deduplicate=True) == [*SENTENCES, ("positive", "The opera")]


def test_an_empty_tree() -> None:
    with pytest.raises(DataError, match="no tree"):
        parse_tree("  ")


def random_tree(generator: random.Random, start: int, length: int) -> tuple[str, list[Phrase]]:
    """A tree over the tokens w<start> and so on, and its phrases."""
    sentiment = generator.randrange(5)
    phrases = [Phrase(sentiment, start, length)]
    if length == 1:
        return f"({sentiment} w{start})", phrases
    borders = sorted(generator.sample(range(1, length), generator.randint(1, min(3, length - 1))))
    parts = []
    for first, end in zip([0, *borders], [*borders, length], strict=True):
        part, inner = random_tree(generator, start + first, end - first)
        parts.append(part)
        phrases += inner
    return f"({sentiment} {' '.join(parts)})", phrases


@pytest.mark.parametrize("seed", range(20))
def test_random_trees(seed: int) -> None:
    generator = random.Random(seed)
    length = generator.randint(1, 30)
    text, phrases = random_tree(generator, 0, length)
    assert parse_tree(text) == ([f"w{index}" for index in range(length)], phrases)
    assert parse_tree(text.replace(" (", "(")) == parse_tree(text)


def test_a_tree_deeper_than_pythons_stack() -> None:
    depth = 5000
    tokens, phrases = parse_tree("(2 (2 a) " * depth + "(2 b)" + ")" * depth)
    assert len(tokens) == depth + 1
    assert phrases[0] == Phrase(2, 0, depth + 1)
