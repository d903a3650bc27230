"""The sample data for inference: its format, its balance, that no hypothesis alone tells, that it stays the same."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.snli import INFERENCE_LABELS, SnliConfig
from elmo_tasks.sample_data import snli
from elmo_tasks.sample_data.snli import SNLI

SIZES = (1000, 200, 200)
NAMES = ("snli_1.0_train.jsonl", "snli_1.0_train_subset.jsonl", "snli_1.0_dev.jsonl", "snli_1.0_test.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    assert SNLI.write(folder, 13, SIZES) == [folder / "snli" / name for name in NAMES]
    return folder / "snli"


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return SnliConfig().build().read(folder / name).to_list()


def test_sizes_and_labels(folder: Path) -> None:
    for name, size in zip((NAMES[0], *NAMES[2:]), SIZES, strict=True):
        counts = collections.Counter(example["label"] for example in read(folder, name))
        assert counts.total() == size
        assert set(counts) == set(INFERENCE_LABELS)
        assert min(counts.values()) > size / 4
    assert (folder / NAMES[0]).read_bytes() == (folder / NAMES[1]).read_bytes()


def test_the_official_fields(folder: Path) -> None:
    records = [json.loads(line) for line in (folder / NAMES[0]).read_text().splitlines()]
    assert len({record["pairID"] for record in records}) == len(records)
    without_label = [record for record in records if record["gold_label"] == "-"]
    assert 0 < len(without_label) == len(records) - SIZES[0]
    for record in records:
        votes = collections.Counter(record["annotator_labels"])
        majority = [label for label, count in votes.items() if count >= 3]
        assert majority == ([] if record["gold_label"] == "-" else [record["gold_label"]])
        assert record["sentence1"][-1] == record["sentence2"][-1] == "."
        assert record["sentence1"][-2] != " "  # raw text
    assert all(example["premise"][-1] == "." for example in read(folder, NAMES[0]))


def test_the_hypothesis_alone_does_not_tell(folder: Path) -> None:
    labels = collections.defaultdict(collections.Counter)
    for example in read(folder, NAMES[0]):
        labels[" ".join(example["hypothesis"])][example["label"]] += 1
    often = [counts for counts in labels.values() if counts.total() >= 15]
    assert len(often) > 20
    assert all(len(counts) == 3 for counts in often)
    best_guesses = sum(max(counts.values()) for counts in labels.values())
    assert best_guesses / SIZES[0] < 0.5


def test_the_labels_are_true(folder: Path) -> None:
    """Told again from the words: what a fact's wording stands for, and what the premise says on its topic."""
    meaning = {}
    for topic, generals in snli._TOPICS.items():
        for general, particulars in generals.items():
            meaning |= dict.fromkeys((general, *particulars), (topic, general))
    for example in read(folder, NAMES[3]):
        premise = " ".join(example["premise"]).lower()
        told = dict(each for wording, each in meaning.items() if f" {wording} " in f" {premise} ")
        topic, general = meaning[" ".join(example["hypothesis"][3:-1])]
        wanted = "entailment" if told.get(topic) == general else "contradiction" if topic in told else "neutral"
        assert example["label"] == wanted


def test_the_seed_decides_everything(folder: Path, tmp_path: Path) -> None:
    SNLI.write(tmp_path / "same", 13, (20, 1, 3))
    SNLI.write(tmp_path / "other", 14, (20, 1, 3))
    for name, size in zip((NAMES[0], *NAMES[2:]), (20, 1, 3), strict=True):
        examples = read(tmp_path / "same" / "snli", name)
        assert examples == read(folder, name)[:size]
        assert examples != read(tmp_path / "other" / "snli", name)


def test_the_corpus_has_the_words_of_all_files(folder: Path) -> None:
    words = {token for tokens in SNLI.corpus(13) for token in tokens}
    for name in NAMES:
        for example in read(folder, name):
            assert {*example["premise"], *example["hypothesis"]} <= words
