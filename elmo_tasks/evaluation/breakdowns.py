"""Scores of parts of the data, such as long and short texts. The counts of the parts add up to those of the whole.

# K counts that the scores are computed from
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.metrics.metric import f1_scores
from elmo_tasks.tasks import Task
from elmo_tasks.text.vocabulary import Vocabulary

Array = NDArray[np.float64]
Scores: TypeAlias = Callable[[Array], Mapping[str, Array]]

_QUARTERS = (0.25, 0.5, 0.75)
LENGTHS = (1, 2, 3, 5, 9, 17)  # in tokens: where the ranges of lengths of spans begin


class BucketKey(NamedTuple):
    """A bucket, and where it stands among the others."""

    order: float
    name: str


class Item(NamedTuple):
    """One thing that is counted, such as a span: its bucket in each breakdown, by title, and its K counts."""

    buckets: Mapping[str, BucketKey]
    counts: Sequence[float]


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A part of the data.

    Arguments:
        size: how many items it has.
        counts: what the scores are computed from; they add up over the buckets of a breakdown.
    """

    name: str
    size: int
    counts: list[float]
    scores: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Breakdown:
    """The scores of `items`, such as examples or spans, by something, such as their length."""

    items: str
    by: str
    buckets: list[Bucket]


def break_down(name: str, items: Sequence[Item], scores: Scores) -> list[Breakdown]:
    """A breakdown for each title of the items' buckets.

    Arguments:
        name: what the items are, in the plural.
        scores: from K counts.
    """
    breakdowns = []
    for title in dict.fromkeys(title for item in items for title in item.buckets):
        parts: dict[BucketKey, list[Sequence[float]]] = {}
        for item in items:
            if title in item.buckets:
                parts.setdefault(item.buckets[title], []).append(item.counts)
        buckets = []
        for key in sorted(parts):
            counts = np.sum(np.array(parts[key], dtype=np.float64), axis=0)
            values = {key: float(value) for key, value in scores(counts).items()}
            buckets.append(Bucket(key.name, len(parts[key]), counts.tolist(), values))
        breakdowns.append(Breakdown(name, title, buckets))
    return breakdowns


def item_scores(counts: Array) -> Mapping[str, Array]:
    """F1, precision and recall of items that are right, found and gold: (..., 3)."""
    return f1_scores(*np.moveaxis(counts, -1, 0))


def ranged(value: float, edges: Sequence[int], unit: str = "") -> BucketKey:
    """The range of whole numbers that a value is in; each edge begins a range, and the first begins at the first edge.

    With a `unit`, such as %, ranges are not of whole numbers: each ends with the edge that the next one begins with.
    """
    number = bisect.bisect_right(edges, value) - 1
    first, step = edges[number], 0 if unit else 1
    if number + 1 == len(edges):
        return BucketKey(number, f"{first}{unit} or more")
    last = edges[number + 1] - step
    return BucketKey(number, f"{first}{unit}" if first == last else f"{first} to {last}{unit}")


def quarters(values: Sequence[float]) -> list[BucketKey]:
    """The quarter of the values that each is in, named by its smallest and its largest value; equal ones share one."""
    edges = np.unique(np.quantile(values, _QUARTERS, method="lower"))
    numbers = np.searchsorted(edges, values)
    names = {}
    for number in set(numbers.tolist()):
        inside = [value for value, other in zip(values, numbers, strict=True) if other == number]
        low, high = f"{min(inside):.0f}", f"{max(inside):.0f}"
        names[number] = low if low == high else f"{low} to {high}"
    return [BucketKey(number, names[number]) for number in numbers.tolist()]


def of_examples(
    task: Task, examples: Sequence[Mapping[str, Any]], sums: Array, vocabulary: Vocabulary | None
) -> list[Item]:
    """The examples by length and, if the run's vocabulary is known, by unseen words.

    Arguments:
        sums: of the task's metric, for each example: (examples, K).
    """
    columns = {"length": quarters([task.length(example) for example in examples])}
    if vocabulary:
        words = [[token for text in task.texts(example) for token in text] for example in examples]
        columns["unseen words"] = [_share_unseen(each, vocabulary) for each in words]
    return [
        Item({by: buckets[row] for by, buckets in columns.items()}, counts.tolist()) for row, counts in enumerate(sums)
    ]


def words_of_item(tokens: Sequence[str], vocabulary: Vocabulary | None) -> dict[str, BucketKey]:
    """The bucket of a few words, such as a span, by its unseen words; none without a vocabulary."""
    if vocabulary is None:
        return {}
    seen = sum(map(vocabulary.has_seen, tokens))
    unseen = BucketKey(0, "none") if seen == len(tokens) else BucketKey(1, "some") if seen else BucketKey(2, "all")
    return {"unseen words": unseen}


def _share_unseen(words: Sequence[str], vocabulary: Vocabulary) -> BucketKey:
    count = len(words) - sum(map(vocabulary.has_seen, words))
    return ranged(100 * count / len(words), (0, 5, 10, 20), " %") if count else BucketKey(-1, "none")
