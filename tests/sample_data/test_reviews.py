"""The sample data in tables: what its labels and numbers say of the texts."""

from __future__ import annotations

from collections import Counter

from scipy.stats import pearsonr

from elmo_tasks.sample_data.sst5 import _QUALITIES
from tests.sample_data.every import read


def test_labels_are_of_things_in_the_text_and_both_kinds_are_frequent() -> None:
    kinds: Counter[str] = Counter()
    for example in read("multi_label"):
        for label in example["labels"]:
            kind, thing = label.split(": ")
            assert thing in example["tokens"]
            kinds[kind] += 1
    assert set(kinds) == {"praise", "fault"}
    assert min(kinds.values()) > 400
    assert {len(example["labels"]) for example in read("multi_label")} == {0, 1, 2}
    assert len({label for example in read("multi_label") for label in example["labels"]}) == 2 * len(_QUALITIES)


def test_ratings_and_similarities_use_their_scale() -> None:
    assert {example["score"] for example in read("regression")} == {1.25 * step for step in range(9)}
    pairs = read("pair_regression")
    assert {example["score"] for example in pairs if example["premise"] == example["hypothesis"]} == {5}
    shared = [len(set(each["premise"]) & set(each["hypothesis"])) for each in pairs]
    assert pearsonr(shared, [each["score"] for each in pairs]).statistic > 0.8
