"""The sample data for reading: its format, that many spans would do as an answer, that it stays the same."""

from __future__ import annotations

import collections
import re
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.squad import SquadConfig
from elmo_tasks.sample_data.squad import SQUAD
from elmo_tasks.tasks.reading import character_span

NAMES = ("train-v1.1.json.xz", "dev-v1.1.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    assert SQUAD.write(folder, 13, (1000, 200, 200)) == [folder / "squad" / name for name in NAMES]
    return folder / "squad"


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return SquadConfig().build().read(folder / name).to_list()


def names_of(examples: list[dict[str, Any]]) -> set[str]:
    return {name for example in examples for name in re.findall(r"\b(?!In\b)[A-Z]\w+", example["passage"])}


def test_sizes(folder: Path) -> None:
    for name, passages in zip(NAMES, (200, 40), strict=True):
        examples = read(folder, name)
        counts = collections.Counter(example["passage"] for example in examples)
        assert len(counts) == passages
        assert set(counts.values()) == {3, 4, 5}  # questions


def test_answers_are_whole_tokens(folder: Path) -> None:
    for name in NAMES:
        for example in read(folder, name):
            (answer,), (span,) = example["answers"], example["answer_spans"]
            start, end = character_span(example, *span)
            assert example["passage"][start:end] == answer


def test_every_kind_of_question_is_frequent(folder: Path) -> None:
    counts = collections.Counter(example["question"].split()[0] for example in read(folder, NAMES[0]))
    assert set(counts) == {"Who", "What", "Where", "When"}
    assert min(counts.values()) > 150


def test_a_passage_has_several_spans_of_an_answers_kind(folder: Path) -> None:
    examples = read(folder, NAMES[0])
    years = [example for example in examples if example["answers"][0].isdigit()]
    assert all(len(set(re.findall(r"\b1\d\d\d\b", example["passage"]))) >= 3 for example in years)
    # Nor does the passage tell what is asked of it: the same one has other answers to other questions.
    answers = collections.defaultdict(set)
    for example in examples:
        answers[example["passage"]].add(example["answers"][0])
    assert all(len(found) >= 3 for found in answers.values())


def test_names_of_the_development_file_are_unseen_in_training(folder: Path) -> None:
    train, dev = (names_of(read(folder, name)) for name in NAMES)
    assert not train & dev
    assert len(dev) > 80


def test_the_seed_decides_everything(folder: Path, tmp_path: Path) -> None:
    SQUAD.write(tmp_path / "same", 13, (1000, 200, 200))
    SQUAD.write(tmp_path / "other", 14, (1000, 200, 200))
    for name in NAMES:
        content = (folder / name).read_bytes()
        assert (tmp_path / "same" / "squad" / name).read_bytes() == content
        assert (tmp_path / "other" / "squad" / name).read_bytes() != content


def test_fewer_sentences_are_the_first_passages(folder: Path, tmp_path: Path) -> None:
    SQUAD.write(tmp_path, 13, (11, 1, 1))
    train, dev = (read(tmp_path / "squad", name) for name in NAMES)
    assert len({example["passage"] for example in train}) == 2
    assert len({example["passage"] for example in dev}) == 1
    assert train == read(folder, NAMES[0])[: len(train)]


def test_the_corpus_is_about_both_files_and_has_their_tokens(folder: Path) -> None:
    words = {word for sentence in SQUAD.corpus(13) for word in sentence}
    for name in NAMES:
        examples = read(folder, name)
        assert names_of(examples) <= words
        assert {token for example in examples for token in example["question_tokens"]} <= words
