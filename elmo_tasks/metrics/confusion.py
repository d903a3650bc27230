"""Which label is taken for which, and how well each label is found."""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

import numpy as np

from elmo_tasks.metrics.metric import percentage
from elmo_tasks.text.vocabulary import natural_order


class ConfusionTable(TypedDict):
    """How often each gold label (row) got each predicted label (column)."""

    labels: list[str]  # of rows and columns, in their natural order, or with the most frequent gold label first
    counts: list[list[int]]


def confusion_table(pairs: Counter[tuple[str, str]]) -> ConfusionTable:
    """The table of counted pairs, each a gold and a predicted label."""
    gold: Counter[str] = Counter()
    for (label, other), count in pairs.items():
        gold[label] += count
        gold[other] += 0  # a label that is only predicted has a row, too
    labels = natural_order(gold) or sorted(gold, key=lambda label: (-gold[label], label))
    return {"labels": labels, "counts": [[pairs[row, column] for column in labels] for row in labels]}


class LabelScores(TypedDict):
    """How well each label is found: precision, recall and F1 in percent, and how often the label is gold."""

    labels: dict[str, dict[str, float]]
    macro_f1: float  # the mean of all labels
    majority: float  # the accuracy, in percent, of always giving the most frequent gold label


def label_scores(table: ConfusionTable) -> LabelScores:
    """The scores of the labels of a table. A label that is neither gold nor predicted is not in it."""
    counts = np.array(table["counts"], dtype=np.float64)
    right, gold, predicted = counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)
    columns = {
        "precision": percentage(right, predicted),
        "recall": percentage(right, gold),
        "f1": percentage(2 * right, gold + predicted),
        "support": gold,
    }
    labels = {
        label: {name: float(values[row]) for name, values in columns.items()}
        for row, label in enumerate(table["labels"])
    }
    return {
        "labels": labels,
        "macro_f1": float(columns["f1"].mean()),
        "majority": float(percentage(gold.max(), gold.sum())),
    }


def largest(table: ConfusionTable, count: int) -> ConfusionTable:
    """A table of at most `count` labels: the most frequent ones, and `other` for the rest."""
    labels, counts = table["labels"], table["counts"]
    if len(labels) <= count:
        return table
    frequent = sorted(range(len(labels)), key=lambda row: -sum(counts[row]))[: count - 1]
    parts = [[row] for row in sorted(frequent)] + [[row for row in range(len(labels)) if row not in frequent]]
    sums = [[sum(counts[row][column] for row in rows for column in columns) for columns in parts] for rows in parts]
    return {"labels": [*(labels[row] for row in sorted(frequent)), "other"], "counts": sums}


def cells(table: ConfusionTable, count: int = 12) -> list[list[str]]:
    """A table of at most `count` labels as texts: a row of the predicted labels, then a row for each gold label."""
    table = largest(table, count)
    rows = zip(table["labels"], table["counts"], strict=True)
    return [["", *table["labels"]], *([label, *(str(each) if each else "·" for each in own)] for label, own in rows)]
