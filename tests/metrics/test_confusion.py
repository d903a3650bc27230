from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

from elmo_tasks.metrics.confusion import Confusion, ConfusionTable, cells, label_scores, largest


def test_pairs_are_counted_in_the_order_of_gold_labels() -> None:
    confusion = Confusion()
    confusion.add(["a", "b", "b"], ["b", "b", "a"])
    confusion.add(["x", "b"], ["b", "c"])
    assert confusion.table() == {
        "labels": ["b", "a", "c", "x"],
        "counts": [[1, 1, 0, 1], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]],
    }
    with pytest.raises(ValueError, match="argument 2"):
        confusion.add(["a"], [])


def test_labels_with_a_natural_order_are_in_it() -> None:
    confusion = Confusion()
    confusion.add(["10", "9", "2", "2"], ["2", "2", "2", "10"])
    table = confusion.table()
    assert table == {"labels": ["2", "9", "10"], "counts": [[1, 1, 1], [0, 0, 0], [1, 0, 0]]}
    assert largest(table, 2) == {"labels": ["2", "other"], "counts": [[1, 2], [1, 0]]}
    assert largest({"labels": ["1", "2", "3"], "counts": [[0, 0, 1], [0, 9, 0], [0, 0, 5]]}, 2) == {
        "labels": ["2", "other"],
        "counts": [[9, 0], [0, 6]],
    }


def test_rare_labels_are_added_up() -> None:
    confusion = Confusion()
    confusion.add(["a", "a", "a", "b", "c", "x", "c"], ["a", "a", "a", "b", "b", "b", "c"])
    table = confusion.table()
    assert largest(table, 4) == table
    assert largest(table, 3) == {"labels": ["a", "b", "other"], "counts": [[3, 0, 0], [0, 1, 2], [0, 0, 1]]}


def test_a_table_as_texts() -> None:
    assert cells({"labels": ["a", "b", "c"], "counts": [[3, 0, 1], [0, 0, 0], [0, 2, 0]]}, 2) == [
        ["", "a", "other"],
        ["a", "3", "1"],
        ["other", "·", "2"],
    ]


def test_the_scores_of_labels_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    gold, predicted = (generator.choice(["a", "b", "c", "d"], 60, p=shares) for shares in ([0.6, 0.3, 0.1, 0], None))
    confusion = Confusion()
    confusion.add(predicted.tolist(), gold.tolist())
    scores = label_scores(confusion.table())
    labels = list(scores["labels"])
    expected = precision_recall_fscore_support(gold, predicted, labels=labels, zero_division=0)
    for name, values in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        found = [scores["labels"][label][name] for label in labels]
        np.testing.assert_allclose(found, values if name == "support" else 100 * values)
    assert scores["macro_f1"] == pytest.approx(100 * f1_score(gold, predicted, average="macro", zero_division=0))
    assert scores["majority"] == pytest.approx(100 * np.mean(gold == "a"))


def test_without_examples_all_scores_are_zero() -> None:
    table = ConfusionTable(labels=["a"], counts=[[0]])
    assert label_scores(table)["labels"]["a"]["f1"] == label_scores(table)["majority"] == 0
