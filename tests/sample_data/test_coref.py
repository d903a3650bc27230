"""The sample data for coreference: its format, that words do not tell what they mean, that a seed decides it."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.coref import CoreferenceConll2012Config
from elmo_tasks.sample_data.coref import COREF

FILES = {
    "train": "ontogum.train.v4_gold_conll.xz",
    "dev": "ontogum.dev.v4_gold_conll",
    "test": "ontogum.test.v4_gold_conll",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    paths = COREF.write(folder, 13, (1000, 200, 200))
    assert [path for path in paths if path.parent == folder / "coref_ontogum"] == [
        folder / "coref_ontogum" / name for name in FILES.values()
    ]
    return folder


def read(folder: Path, split: str) -> list[dict[str, Any]]:
    return CoreferenceConll2012Config().build().read(folder / "coref_ontogum" / FILES[split]).to_list()


def mentions(example: dict[str, Any]) -> list[list[str]]:
    """The texts of each cluster's mentions."""
    tokens = [token for sentence in example["sentences"] for token in sentence]
    return [[" ".join(tokens[start : end + 1]) for start, end in cluster] for cluster in example["clusters"]]


def test_sizes_and_genres(folder: Path) -> None:
    assert [len(read(folder, split)) for split in FILES] == [50, 10, 10]
    for split in FILES:
        assert {example["genre"] for example in read(folder, split)} == {"story", "talk"}
    assert all(7 <= len(example["sentences"]) <= 14 for example in read(folder, "train"))


def test_every_file_has_a_document(tmp_path: Path) -> None:
    COREF.write(tmp_path, 13, (20, 1, 3))
    assert [len(read(tmp_path, split)) for split in FILES] == [1, 1, 1]


def test_the_folders_of_conll_2012_hold_the_same(folder: Path) -> None:
    for split, name in (("train", "train"), ("dev", "development"), ("test", "test")):
        official = folder / "conll-2012" / "v4" / "data" / name / "data" / "english"
        assert CoreferenceConll2012Config().build().read(official).to_list() == read(folder, split)


def test_clusters(folder: Path) -> None:
    examples = read(folder, "train")
    assert all(len(cluster) > 1 for example in examples for cluster in example["clusters"])
    nested = [
        (one, other)
        for example in examples
        for cluster in example["clusters"]
        for other_cluster in example["clusters"]
        for one in cluster
        for other in other_cluster
        if one != other and one[0] <= other[0] <= other[1] <= one[1]
    ]
    assert len(nested) > 10


def test_pronouns_mean_somebody_else_from_story_to_story(folder: Path) -> None:
    genders = collections.defaultdict(set)
    for example in read(folder, "train"):
        for cluster in map(set, mentions(example)):
            pronouns = {text.lower() for text in cluster} & {"he", "she"}
            for name in {text for text in cluster if text.istitle() and text not in ("He", "She", "I", "You")}:
                genders[name] |= pronouns
    assert sum(found == {"he", "she"} for found in genders.values()) > 3


def test_who_i_and_you_are_is_told_by_the_speakers(folder: Path) -> None:
    talks = [example for example in read(folder, "train") if example["genre"] == "talk"]
    for example in talks:
        speakers = [speaker for sentence in example["speakers"] for speaker in sentence]
        tokens = [token for sentence in example["sentences"] for token in sentence]
        for cluster in example["clusters"]:
            said = collections.defaultdict(set)
            for start, end in cluster:
                if start == end and tokens[start].lower() in ("i", "me", "my", "you"):
                    said["you" if tokens[start].lower() == "you" else "i"].add(speakers[start])
            assert len(said["i"]) <= 1
            assert len(said["you"]) <= 1
            assert not said["i"] & said["you"]
    assert all(len({speaker for sentence in example["speakers"] for speaker in sentence}) == 2 for example in talks)


def test_names_of_test_and_dev_are_unseen_in_training(folder: Path) -> None:
    words = {
        split: {token for example in read(folder, split) for sentence in example["sentences"] for token in sentence}
        for split in FILES
    }
    new = {word for word in words["test"] - words["train"] if word.istitle()}
    assert len(new) > 20
    assert not new & words["dev"]


def test_the_seed_decides_everything(folder: Path, tmp_path: Path) -> None:
    COREF.write(tmp_path / "same", 13, (1000, 200, 200))
    COREF.write(tmp_path / "other", 14, (1000, 200, 200))
    for split in FILES:
        assert read(tmp_path / "same", split) == read(folder, split)
        assert read(tmp_path / "other", split) != read(folder, split)


def test_corpus() -> None:
    sentences = list(COREF.corpus(13))
    assert len(sentences) > 3000
    assert sentences == list(COREF.corpus(13))
    assert {"he", "She", "I"} < {token for sentence in sentences for token in sentence}
