"""What holds for the sample data of every task: its files, sizes and names, and that a seed decides everything."""

from __future__ import annotations

import hashlib
import itertools
import re
from pathlib import Path

import pytest

from elmo_tasks.sample_data import SAMPLE_TASKS
from tests.sample_data.every import SAMPLES, folder, read, read_file, write_files


def names(name: str, split: int) -> set[str]:
    """Words with a capital that are not at the beginning of a sentence; where parts of speech are known, all names."""
    found: set[str] = set()
    for example in read(name, split):
        tokens = example.get("tokens", [])
        if name == "pos":
            found |= {token for token, tag in zip(tokens, example["tags"], strict=True) if tag == "NNP"}
        found |= {token for token in tokens[1:] if token[0].isupper()}
        found |= set(re.findall(r"\b[A-Z]\w+", example.get("passage", "")))
    return found


def words(name: str, split: int) -> set[str]:
    """The tokens of the examples, and the names in passages."""
    keys = ("tokens", "premise", "hypothesis", "question_tokens")
    found = {token for example in read(name, split) for key in keys for token in example.get(key, ())}
    return found | (names(name, split) if name == "squad" else set())


def test_every_task_is_here() -> None:
    assert set(SAMPLES) == {*SAMPLE_TASKS, "squad2"}


@pytest.mark.parametrize("name", SAMPLES)
def test_files_and_sizes(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    written = write_files(sample.task, tmp_path, 13, (1, 1, 1))
    assert [path for path in written if str(path.relative_to(tmp_path)) in sample.files] == [
        tmp_path / file for file in sample.files
    ]
    assert all(len(read_file(name, tmp_path / file)) >= 1 for file in sample.files)
    if sample.sizes:
        assert tuple(len(read(name, split)) for split in range(3)) == sample.sizes


@pytest.mark.parametrize("name", SAMPLES)
def test_every_version_writes_the_same_files(name: str) -> None:
    """So that the scores of models that were trained on them can be compared."""
    files = "".join(f"{file}\n{text}" for file, text in SAMPLES[name].task.texts(13, (100, 61, 21)))
    assert hashlib.sha256(files.encode()).hexdigest()[:16] == SAMPLES[name].digest


@pytest.mark.parametrize("name", SAMPLES)
def test_the_seed_decides_everything_and_fewer_sentences_are_the_first_ones(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    fewer = (100, 20, 20)
    write_files(sample.task, tmp_path / "same", 13, fewer)
    write_files(sample.task, tmp_path / "other", 14, fewer)
    for split, file in enumerate(sample.files):
        examples = read_file(name, tmp_path / "same" / file)
        assert examples == read(name, split)[: len(examples)]
        assert examples != read_file(name, tmp_path / "other" / file)
        if sample.sizes:
            assert len(examples) * sample.sentences[split] == fewer[split] * sample.sizes[split]


@pytest.mark.parametrize("name", ["ner", "sst5", "squad", "srl", "pos"])
def test_names_of_development_and_test_data_are_unseen_in_training(name: str) -> None:
    found = [names(name, split) - SAMPLES[name].shared for split in range(len(SAMPLES[name].files))]
    assert all(len(each) > 15 for each in found)
    assert not any(one & other for one, other in itertools.combinations(found, 2))


@pytest.mark.parametrize("name", ["sst5", "snli", "squad", "srl", "pos"])
def test_the_corpus_has_the_words_of_all_files(name: str) -> None:
    known = {token for sentence in SAMPLES[name].task.corpus(13) for token in sentence}
    for split in range(len(SAMPLES[name].files)):
        assert words(name, split) <= known


@pytest.mark.parametrize("name", ["srl", "coref"])
def test_the_folders_of_conll_2012_hold_the_same(name: str) -> None:
    for split, official in enumerate(("train", "development", "test")):
        path = folder(name) / "conll-2012" / "v4" / "data" / official / "data" / "english"
        assert read_file(name, path) == read(name, split)
