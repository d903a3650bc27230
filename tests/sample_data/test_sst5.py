"""The sample data for sentiment: its format, its balance, that no word alone tells it, that it is always the same."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.sst import SENTIMENTS, SstConfig, parse_tree
from elmo_tasks.sample_data import sst5
from elmo_tasks.sample_data.sst5 import SST5

SIZES = (1000, 200, 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    paths = SST5.write(folder, 13, SIZES)
    assert paths == [folder / "sst5" / f"{split}.txt" for split in ("train", "dev", "test")]
    return folder / "sst5"


def read(folder: Path, split: str, **settings: Any) -> list[dict[str, Any]]:
    return SstConfig(**settings).build().read(folder / f"{split}.txt").to_list()


def test_sizes_and_sentiments(folder: Path) -> None:
    for split, size in zip(("train", "dev", "test"), SIZES, strict=True):
        counts = collections.Counter(example["label"] for example in read(folder, split))
        assert counts.total() == size
        assert set(counts) == set(SENTIMENTS[5].values())
        assert min(counts.values()) > size / 20


def test_trees_are_binary_and_escaped(folder: Path) -> None:
    text = (folder / "train.txt").read_text()
    assert "-LRB-" in text
    assert any("(" in example["tokens"] for example in read(folder, "train"))
    for line in text.splitlines():
        tokens, phrases = parse_tree(line)
        assert len(phrases) == 2 * len(tokens) - 1
        assert tokens[0][0].isupper()
        assert {phrase.sentiment for phrase in phrases if phrase.length == 1} == {2}


def test_phrases_to_learn_from(folder: Path) -> None:
    phrases = read(folder, "train", subtrees=True, min_length=4)
    assert len(phrases) > 2 * SIZES[0]


def test_no_word_tells_the_sentiment_of_a_phrase(folder: Path) -> None:
    labels = collections.defaultdict(set)
    for example in read(folder, "train", subtrees=True, min_length=4):
        for token in example["tokens"]:
            labels[token].add(example["label"])
    adjectives = {word for good, bad in sst5._QUALITIES.values() for word in good + bad}
    assert all(len(labels[word]) == 5 for word in adjectives)


def test_many_sentences_hold_both_good_and_bad_and_either_can_decide(folder: Path) -> None:
    mixed = collections.Counter()
    for line in (folder / "train.txt").read_text().splitlines():
        _, (root, *phrases) = parse_tree(line)
        if {0, 1} & {phrase.sentiment for phrase in phrases} and {3, 4} & {phrase.sentiment for phrase in phrases}:
            mixed[root.sentiment > 2] += 1
    assert min(mixed[True], mixed[False]) > 70


def test_the_main_clause_or_what_follows_but_decides(folder: Path) -> None:
    forms = collections.Counter()
    for line in (folder / "train.txt").read_text().splitlines():
        tokens, phrases = parse_tree(line)
        if "," not in tokens:
            continue
        comma = tokens.index(",")
        form = tokens[comma + 1] if tokens[comma + 1] in ("but", "although") else tokens[0]
        forms[form] += 1
        begin = comma + 1 if form == "Although" else comma + 2
        (first,) = (phrase.sentiment for phrase in phrases if (phrase.start, phrase.length) == (0, comma))
        second = max((phrase for phrase in phrases if phrase.start == begin), key=lambda phrase: phrase.length)
        assert phrases[0].sentiment == (first if form == "although" else second.sentiment)
    assert set(forms) == {"but", "although", "Although"}


def test_names_of_test_and_dev_are_unseen_in_training(folder: Path) -> None:
    names = {
        split: {token for example in read(folder, split) for token in example["tokens"][1:] if token[0].isupper()}
        for split in ("train", "dev", "test")
    }
    assert all(len(found) > 20 for found in names.values())
    assert not names["train"] & (names["dev"] | names["test"])
    assert not names["dev"] & names["test"]


def test_the_seed_decides_everything(folder: Path, tmp_path: Path) -> None:
    SST5.write(tmp_path / "same", 13, (20, 1, 3))
    SST5.write(tmp_path / "other", 14, (20, 1, 3))
    for split, size in zip(("train", "dev", "test"), (20, 1, 3), strict=True):
        lines = (tmp_path / "same" / "sst5" / f"{split}.txt").read_text().splitlines()
        assert lines == (folder / f"{split}.txt").read_text().splitlines()[:size]
        assert lines != (tmp_path / "other" / "sst5" / f"{split}.txt").read_text().splitlines()


def test_the_corpus_has_the_words_of_all_files(folder: Path) -> None:
    words = {token for tokens in SST5.corpus(13) for token in tokens}
    for split in ("train", "dev", "test"):
        assert {token for example in read(folder, split) for token in example["tokens"]} <= words
