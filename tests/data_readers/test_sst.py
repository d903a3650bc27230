"""The sentiment trees: golden files, phrases chosen by the options, every error with its place, counts."""

from __future__ import annotations

import gzip
import logging
import random
from pathlib import Path
from typing import Any

import pydantic
import pytest

from elmo_tasks.data_readers.reader import PLACE_FEATURES, DatasetReaderConfig
from elmo_tasks.data_readers.sst import Phrase, SstConfig, parse_tree
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import Classification

GOLDEN = r"""
(4 (2 The) (4 (4 (3 bright) (2 opera)) (3 (2 -LRB-) (3 (2 and\/or) (2 -RRB-)))))
(2 (2 The) (2 opera))

(0 Never)
(1 (2 (2 The) (2 opera)) (1 drags))
"""
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


def write(folder: Path, text: str) -> Path:
    path = folder / "trees.txt"
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, **settings: Any) -> list[tuple[str, str]]:
    examples = SstConfig(**settings).build().read(path)
    return [(example["label"], " ".join(example["tokens"])) for example in examples]


def test_golden_file(tmp_path: Path) -> None:
    dataset = SstConfig().build().read(write(tmp_path, GOLDEN))
    assert dataset["tokens"][:] == [text.split() for _, text in SENTENCES]
    assert dataset["label"][:] == [label for label, _ in SENTENCES]
    assert dataset["line"][:] == [2, 3, 5, 6]
    assert dataset.features == {**Classification.features, **PLACE_FEATURES}


def test_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "trees.txt.gz"
    path.write_bytes(gzip.compress(GOLDEN.encode()))
    assert len(SstConfig().build().read(path)) == 4


def test_every_phrase_after_its_sentence(tmp_path: Path) -> None:
    examples = read(write(tmp_path, GOLDEN), subtrees=True)
    assert examples[:11] == PHRASES_OF_THE_FIRST
    assert examples[11:14] == [("neutral", "The opera"), ("neutral", "The"), ("neutral", "opera")]
    assert examples[14:16] == [("very negative", "Never"), ("negative", "The opera drags")]
    assert len(examples) == 20


def test_short_phrases_are_left_out_but_no_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, GOLDEN)
    examples = read(path, subtrees=True, min_length=3)
    wanted = [each for each in PHRASES_OF_THE_FIRST if len(each[1].split()) >= 3]
    assert len(wanted) == 3
    assert examples == [*wanted, *SENTENCES[1:]]
    assert read(path, min_length=3) == SENTENCES


def test_two_classes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, GOLDEN)
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        assert read(path, granularity=2) == [
            ("positive", "The bright opera ( and/or )"),
            ("negative", "Never"),
            ("negative", "The opera drags"),
        ]
    assert "1 neutral example(s) left out" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        phrases = read(path, granularity=2, subtrees=True)
    neutral = sum(label == "neutral" for label, _ in read(path, subtrees=True))
    assert f"{neutral} neutral example(s) left out" in caplog.text
    assert len(phrases) == sum(label != "neutral" for label, _ in read(path, subtrees=True))
    assert {label for label, _ in phrases} == {"positive", "negative"}


def test_identical_phrases(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, GOLDEN + "(3 (2 The) (2 opera))\n(2 (2 The) (2 opera))\n")
    examples = read(path, subtrees=True)
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        distinct = read(path, subtrees=True, deduplicate=True)
    assert f"{len(examples) - len(distinct)} example(s) seen before left out" in caplog.text
    assert distinct == list(dict.fromkeys(examples))
    assert distinct.count(("neutral", "The opera")) == distinct.count(("positive", "The opera")) == 1
    assert read(path, deduplicate=True) == [*SENTENCES, ("positive", "The opera")]


def test_no_break_spaces_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    assert read(write(tmp_path, "\ufeff(3 (2 8\u00a01\\/2) (3 Women))\r\n")) == [("positive", "8\u00a01/2 Women")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("(3 (2 It) (3 works)", "the tree ends with 1 bracket(s) that are not closed"),
        ("(3 (2 It", "the tree ends with 2 bracket(s) that are not closed"),
        ("(", "the tree ends with 1 bracket(s) that are not closed"),
        ("(3 (2 It) (3 works)))", "column 21: ')' outside the tree; wanted one tree per line"),
        ("(3 works) again", "column 11: 'again' outside the tree"),
        ("(3 works) (3 again)", "column 11: '(' outside the tree"),
        ("It (3 works)", "column 1: 'It' where an opening bracket was wanted"),
        ("(3 (It) (3 works))", "column 5: 'It' where a label from 0 to 4 was wanted"),
        ("((2 It) (3 works))", "column 2: '(' where a label from 0 to 4 was wanted"),
        ("(5 works)", "column 2: '5' where a label from 0 to 4 was wanted"),
        ("(34 works)", "column 2: '34' where a label from 0 to 4 was wanted"),
        ("(3 (2 It) works)", "column 11: 'works' where a bracket was wanted"),
        ("(3 It works)", "column 7: 'works' where a closing bracket was wanted"),
        ("(3 It (3 works))", "column 7: '(' where a closing bracket was wanted"),
        ("(3 (2 It) (3))", "column 13: ')' where a word or an opening bracket was wanted"),
    ],
)
def test_errors_name_file_line_and_column(tmp_path: Path, line: str, problem: str) -> None:
    path = write(tmp_path, f"(0 Never)\n\n{line}\n(0 Never)\n")
    with pytest.raises(DataError) as caught:
        SstConfig().build().read(path)
    assert str(caught.value).startswith(f"{path}:3: {problem}")


def test_an_empty_tree() -> None:
    with pytest.raises(DataError, match="no tree"):
        parse_tree("  ")


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("(0 Never)\n(3 Café)\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"latin.txt:2: byte 0xe9 at column 7 is not UTF-8"):
        read(path)


@pytest.mark.parametrize(("text", "settings"), [("\n", {}), ("(2 Mild)\n", {"granularity": 2})])
def test_a_file_without_examples(tmp_path: Path, text: str, settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="has no example"):
        SstConfig(**settings).build().read(write(tmp_path, text))


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
    assert parse_tree(text) == ([f"w{position}" for position in range(length)], phrases)
    assert parse_tree(text.replace(" (", "(")) == parse_tree(text)


def test_a_tree_deeper_than_pythons_stack() -> None:
    depth = 5000
    tokens, phrases = parse_tree("(2 (2 a) " * depth + "(2 b)" + ")" * depth)
    assert len(tokens) == depth + 1
    assert phrases[0] == Phrase(2, 0, depth + 1)


def test_config() -> None:
    config = DatasetReaderConfig.model_validate_json('{"type": "sst", "granularity": 2, "subtrees": true}')
    assert config == SstConfig(granularity=2, subtrees=True)
    for wrong in ({"granularity": 3}, {"min_length": 0}):
        with pytest.raises(pydantic.ValidationError, match=next(iter(wrong))):
            SstConfig(**wrong)


@pytest.mark.parametrize(
    ("name", "sentences", "not_neutral", "nodes"),
    [
        ("train.txt", 8_544, 6_920, 318_582),
        ("dev.txt", 1_101, 872, 41_447),
        ("test.txt", 2_210, 1_821, 82_600),
    ],
)
@pytest.mark.slow
def test_counts_of_the_real_data(data_folder: Path, name: str, sentences: int, not_neutral: int, nodes: int) -> None:
    path = data_folder / "sst5" / name
    labels = [example["label"] for example in SstConfig().build().examples(path)]
    assert len(labels) == sentences
    assert sum(label != "neutral" for label in labels) == not_neutral
    escaped = 0
    count = 0
    for example in SstConfig(subtrees=True).build().examples(path):
        count += 1
        escaped += any(token in ("-LRB-", "-RRB-", "``", "''") or "\\" in token for token in example["tokens"])
    assert count == nodes
    assert escaped == 0
