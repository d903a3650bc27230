"""Classification: a label for each text, or a set of labels.

# B batch, K labels
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.metrics import Accuracy, LabelSetF1, Metric
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
    features: ClassVar[Mapping[str, Any]] = {"tokens": STRINGS, "label": STRING}

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> ClassificationBatch:
        tokens = vocabulary.index_tokens([example["tokens"] for example in examples])
        return ClassificationBatch(examples=examples, tokens=tokens, labels=label_tensor(examples, vocabulary))


@dataclasses.dataclass(frozen=True)
class MultiLabel(Task):
    """A set of labels for each text, perhaps none.

    An example is `{"tokens": [str], "labels": [str]}`. For prediction, `tokens` are enough.
    """

    name: ClassVar[str] = "multi_label"
    summary: ClassVar[str] = "texts with a set of labels each"
    features: ClassVar[Mapping[str, Any]] = {"tokens": STRINGS, "labels": STRINGS}

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        return {LABELS: example["labels"]}

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> ClassificationBatch:
        tokens = vocabulary.index_tokens([example["tokens"] for example in examples])
        if any(example.get("labels") is None for example in examples):
            return ClassificationBatch(examples=examples, tokens=tokens, labels=None)
        labels = torch.zeros(len(examples), len(vocabulary.labels[LABELS]))  # (B, K)
        for row, example in enumerate(examples):
            for label in example["labels"]:
                labels[row, vocabulary.label_id(LABELS, label)] = 1
        return ClassificationBatch(examples=examples, tokens=tokens, labels=labels)

    def build_metric(self) -> Metric:
        return LabelSetF1()

    def nothing_to_learn(self, examples: Iterable[Example]) -> str | None:
        return None if any(example["labels"] for example in examples) else "no text has a label"


def label_tensor(examples: Sequence[Example], vocabulary: Vocabulary) -> Tensor | None:
    """The ids of the examples' `"label"`, (B,) int64; None unless all are known.

    Raises:
        UnknownLabelError: the vocabulary does not have a label.
    """
    if any(example.get("label") is None for example in examples):
        return None
    ids = [vocabulary.label_id(LABELS, example["label"]) for example in examples]
    return torch.tensor(ids, dtype=torch.int64)  # (B,)
