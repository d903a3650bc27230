"""The sample data for inference: its format, its balance, that a hypothesis by itself does not show the label."""

from __future__ import annotations

import collections
import json

from elmo_tasks.sample_data import snli
from elmo_tasks.text.label_order import INFERENCE_LABELS
from tests.sample_data.every import file, read


def test_labels() -> None:
    for split in range(3):
        counts = collections.Counter(example["label"] for example in read("snli", split))
        assert set(counts) == set(INFERENCE_LABELS)
        assert min(counts.values()) > counts.total() / 4
    assert file("snli").read_bytes() == file("snli").with_name("snli_1.0_train_subset.jsonl").read_bytes()


def test_the_official_fields() -> None:
    records = [json.loads(line) for line in file("snli").read_text().splitlines()]
    assert len({record["pairID"] for record in records}) == len(records)
    without_label = [record for record in records if record["gold_label"] == "-"]
    assert 0 < len(without_label) == len(records) - 1000
    for record in records:
        votes = collections.Counter(record["annotator_labels"])
        majority = [label for label, count in votes.items() if count >= 3]
        assert majority == ([] if record["gold_label"] == "-" else [record["gold_label"]])
        assert record["sentence1"][-1] == record["sentence2"][-1] == "."
        assert record["sentence1"][-2] != " "  # raw text
    assert all(example["premise"][-1] == "." for example in read("snli"))


def test_the_hypothesis_alone_does_not_tell() -> None:
    labels: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for example in read("snli"):
        labels[" ".join(example["hypothesis"])][example["label"]] += 1
    often = [counts for counts in labels.values() if counts.total() >= 15]
    assert len(often) > 20
    assert all(len(counts) == 3 for counts in often)
    best_guesses = sum(max(counts.values()) for counts in labels.values())
    assert best_guesses / 1000 < 0.5


def test_the_labels_are_true() -> None:
    """Found again from the words: what a fact's wording stands for, and what the premise says on its topic."""
    meaning: dict[str, tuple[str, str]] = {}
    for topic, generals in snli._TOPICS.items():
        for general, particulars in generals.items():
            meaning |= dict.fromkeys((general, *particulars), (topic, general))
    for example in read("snli", 2):
        premise = " ".join(example["premise"]).lower()
        stated = dict(each for wording, each in meaning.items() if f" {wording} " in f" {premise} ")
        topic, general = meaning[" ".join(example["hypothesis"][3:-1])]
        expected = "entailment" if stated.get(topic) == general else "contradiction" if topic in stated else "neutral"
        assert example["label"] == expected
