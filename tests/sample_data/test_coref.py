"""The sample data for coreference: its format, and that words do not show what they mean."""

from __future__ import annotations

import collections
from typing import Any

from elmo_tasks.sample_data.coref import COREF
from tests.sample_data.every import read


def mentions(example: dict[str, Any]) -> list[list[str]]:
    """The texts of each cluster's mentions."""
    tokens = [token for sentence in example["sentences"] for token in sentence]
    return [[" ".join(tokens[start : end + 1]) for start, end in cluster] for cluster in example["clusters"]]


def test_genres() -> None:
    for split in range(3):
        assert {example["genre"] for example in read("coref", split)} == {"story", "talk"}
    assert all(7 <= len(example["sentences"]) <= 14 for example in read("coref"))


def test_clusters() -> None:
    examples = read("coref")
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


def test_pronouns_mean_somebody_else_from_story_to_story() -> None:
    genders: dict[str, set[str]] = collections.defaultdict(set)
    for example in read("coref"):
        for cluster in map(set, mentions(example)):
            pronouns = {text.lower() for text in cluster} & {"he", "she"}
            for name in {text for text in cluster if text.istitle() and text not in ("He", "She", "I", "You")}:
                genders[name] |= pronouns
    assert sum(found == {"he", "she"} for found in genders.values()) > 3


def test_the_speakers_show_who_i_and_you_are() -> None:
    talks = [example for example in read("coref") if example["genre"] == "talk"]
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


def test_names_of_test_and_dev_are_unseen_in_training() -> None:
    train, dev, test = (
        {token for example in read("coref", split) for sentence in example["sentences"] for token in sentence}
        for split in range(3)
    )
    new = {word for word in test - train if word.istitle()}
    assert len(new) > 20
    assert not new & dev


def test_corpus() -> None:
    sentences = list(COREF.corpus(13))
    assert len(sentences) > 3000
    assert sentences == list(COREF.corpus(13))
    assert {"he", "She", "I"} < {token for sentence in sentences for token in sentence}
