"""The order in which labels are shown. Models keep that of their vocabulary, which their weights belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable

SENTIMENT_LABELS = ("very negative", "negative", "neutral", "positive", "very positive")  # 0 to 4 in the treebank
INFERENCE_LABELS = ("entailment", "neutral", "contradiction")  # as SNLI lists them

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")


def natural_order(labels: Iterable[str]) -> list[str] | None:
    """Labels, each once, in the order of their publisher or of their numbers; None if they have no such order."""
    distinct = list(dict.fromkeys(labels))
    for published in (SENTIMENT_LABELS, INFERENCE_LABELS):
        if all(label.lower() in published for label in distinct):
            return sorted(distinct, key=lambda label: published.index(label.lower()))
    return sorted(distinct, key=float) if all(_NUMBER.fullmatch(label) for label in distinct) else None
