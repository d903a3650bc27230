"""The sample data for semantic roles: its format, that no word tells its role, that it is the same every time."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.conll2012 import read_conll2012
from elmo_tasks.data_readers.predicates import PredicatesConfig
from elmo_tasks.data_readers.srl import SrlConll2012Config
from elmo_tasks.sample_data import srl
from elmo_tasks.sample_data.srl import SRL
from elmo_tasks.text.tag_schemes import spans_of_tags

FILES = {"train": "ewt.train.gold_conll.xz", "dev": "ewt.dev.gold_conll", "test": "ewt.test.gold_conll"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    paths = SRL.write(folder, 13, (500, 60, 60))
    assert [path for path in paths if path.parent == folder / "srl_ewt"] == [
        folder / "srl_ewt" / name for name in FILES.values()
    ]
    return folder


def read(folder: Path, split: str) -> list[dict[str, Any]]:
    return SrlConll2012Config().build().read(folder / "srl_ewt" / FILES[split]).to_list()


def test_sizes_and_documents(folder: Path) -> None:
    documents = list(read_conll2012(folder / "srl_ewt" / FILES["train"]))
    assert [len(document.sentences) for document in documents] == [10] * 50
    predicates = [len(sentence.predicates) for document in documents for sentence in document.sentences]
    assert set(predicates) == {0, 1, 2, 3}
    assert len(read(folder, "train")) == sum(predicates) > 500


def test_the_folders_of_conll_2012_hold_the_same(folder: Path) -> None:
    for split, name in (("train", "train"), ("dev", "development"), ("test", "test")):
        official = folder / "conll-2012" / "v4" / "data" / name / "data" / "english"
        assert SrlConll2012Config().build().read(official).to_list() == read(folder, split)


def test_the_predicate_is_the_verb_of_its_frame(folder: Path) -> None:
    for example in read(folder, "train"):
        verbs = [span for span in spans_of_tags(example["tags"]) if span.label == "V"]
        assert [(span.start, span.end) for span in verbs] == [(example["predicate"], example["predicate"])]
        assert example["lemma"]


def test_all_roles_are_there(folder: Path) -> None:
    counts = collections.Counter(
        span.label for example in read(folder, "train") for span in spans_of_tags(example["tags"])
    )
    numbered = {"ARG0", "ARG1", "ARG2", "ARG4", "R-ARG0", "R-ARG1", "C-ARG1"}
    assert set(counts) == {"V", *numbered, "ARGM-TMP", "ARGM-LOC", "ARGM-MOD", "ARGM-NEG"}
    assert min(counts.values()) >= 10


def test_neither_words_nor_places_tell_the_role(folder: Path) -> None:
    first_role: dict[str, set[str]] = collections.defaultdict(set)
    by_role: dict[str, set[str]] = collections.defaultdict(set)
    for example in read(folder, "train"):
        spans = spans_of_tags(example["tags"])
        before = [span.label for span in spans if span.end < example["predicate"]]
        if before:
            first_role[example["lemma"]].add(before[0])
        for span in spans:
            if example["tokens"][span.start] == "by":
                by_role["by"].add(span.label)
    assert {"ARG0", "ARG1"} <= first_role["ring"]
    assert {"ARG0", "ARG1"} <= first_role["open"]
    assert by_role["by"] == {"ARG0", "ARGM-LOC"}


def test_some_words_are_predicates_here_and_none_there(folder: Path) -> None:
    found: dict[str, set[bool]] = collections.defaultdict(set)
    reader = PredicatesConfig(source=SrlConll2012Config()).build()
    for example in reader.read(folder / "srl_ewt" / FILES["train"]):
        for token, tag in zip(example["tokens"], example["tags"], strict=True):
            found[token].add(tag == "B-V")
    assert {word for word, kinds in found.items() if len(kinds) == 2} >= {"watch", "turn", "ring", "closed", "broken"}


def test_names_of_test_and_dev_are_unseen_in_training(folder: Path) -> None:
    names: dict[str, set[str]] = {}
    for split, file in FILES.items():
        names[split] = {
            word
            for document in read_conll2012(folder / "srl_ewt" / file)
            for sentence in document.sentences
            for word, tag in zip(sentence.words, sentence.parts_of_speech, strict=True)
            if tag == "NNP"
        }
    known = {"Bay", "Monday", "Tuesday", "Friday", "Sunday", *srl._MONTHS}
    assert names["train"] & names["dev"] <= known
    assert names["train"] & names["test"] <= known
    assert names["dev"] & names["test"] <= known
    assert all(len(found - known) > 20 for found in names.values())


def test_the_seed_decides_everything(folder: Path, tmp_path: Path) -> None:
    SRL.write(tmp_path / "same", 13, (500, 60, 60))
    SRL.write(tmp_path / "other", 14, (500, 60, 60))
    for split in FILES:
        assert read(tmp_path / "same", split) == read(folder, split)
        assert read(tmp_path / "other", split) != read(folder, split)


def test_one_sentence_is_enough_for_an_example(tmp_path: Path) -> None:
    for seed in range(10):
        SRL.write(tmp_path, seed, (1, 1, 1))
        for split in FILES:
            (document,) = read_conll2012(tmp_path / "srl_ewt" / FILES[split])
            assert len(document.sentences) == 1
            assert len(read(tmp_path, split)) >= 1


def test_the_corpus_is_about_the_words_of_all_files(folder: Path) -> None:
    words = {token for sentence in SRL.corpus(13) for token in sentence}
    for split in FILES:
        assert {token for example in read(folder, split) for token in example["tokens"]} <= words
