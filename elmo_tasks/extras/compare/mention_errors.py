"""Errors of coreference by mention and by cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from elmo_tasks.metrics.coreference import ScoredDocument


def mention_kinds(
    gold: Sequence[Sequence[Sequence[int]]], predicted: Sequence[Sequence[Sequence[int]]]
) -> Counter[str]:
    """How many mentions of a document are right, missed and spurious: the gold ones are the first two, the predicted
    ones the first and the last. Of gold clusters, how many are split, and of predicted ones, how many are merged.
    """
    document = ScoredDocument(gold, predicted)
    right = document.key_of.keys() & document.response_of.keys()
    counts = Counter(right=len(right))
    counts["missed"] = len(document.key_of) - len(right)
    counts["missed singletons"] = sum(
        document.sizes[0][number] == 1 for mention, number in document.key_of.items() if mention not in right
    )
    counts["spurious"] = len(document.response_of) - len(right)
    parts = Counter(one for one, _ in document.common), Counter(other for _, other in document.common)
    counts["split clusters"], counts["merged clusters"] = (sum(n > 1 for n in each.values()) for each in parts)
    return counts
