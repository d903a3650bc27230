"""Classification: a label for each text.

# B batch, K labels
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import datasets
import torch
from torch import Tensor

from elmo_tasks.metrics import Accuracy, Metric
from elmo_tasks.tasks.task import STRING, STRINGS, Batch, Example, Task
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary

LABELS = "labels"  # the namespace of the labels


@dataclasses.dataclass(frozen=True)
class ClassificationBatch(Batch):
    """Texts with a label each or, of other tasks, with a set of labels or a number."""

    tokens: Tokens
    # (B,) int64, ids of the vocabulary's "labels"; of other tasks, (B, K) 0 or 1 or (B,) numbers; None if not known
    labels: Tensor | None


class OneLabel:
    """What the tasks have in common whose examples have one label."""

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        return {LABELS: (example["label"],)}

    def compared_labels(self, record: Mapping[str, Any]) -> Sequence[str]:
        return (record["label"],)

    def build_metric(self) -> Metric:
        return Accuracy("label")


@dataclasses.dataclass(frozen=True)
class Classification(OneLabel, Task):
    """A label for each text. An example is `{"tokens": [str], "label": str}`; for prediction, `tokens` are enough."""

    name: ClassVar[str] = "classification"
    summary: ClassVar[str] = "texts with a label each"
    features: ClassVar[datasets.Features] = datasets.Features({"tokens": STRINGS, "label": STRING})

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> ClassificationBatch:
        tokens = vocabulary.index_tokens([example["tokens"] for example in examples])
        return ClassificationBatch(examples=examples, tokens=tokens, labels=label_tensor(examples, vocabulary))


def label_tensor(examples: Sequence[Example], vocabulary: Vocabulary) -> Tensor | None:
    """The ids of the examples' `"label"`, (B,) int64; None unless all are known.

    Raises:
        UnknownLabelError: the vocabulary does not have a label.
    """
    if any(example.get("label") is None for example in examples):
        return None
    ids = [vocabulary.label_id(LABELS, example["label"]) for example in examples]
    return torch.tensor(ids, dtype=torch.int64)  # (B,)
