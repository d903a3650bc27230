"""Multi-label classification: a set of labels for each text.

# B batch, K labels
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import datasets
import torch

from elmo_tasks.metrics import LabelSetF1, Metric
from elmo_tasks.tasks.classification import LABELS, ClassificationBatch
from elmo_tasks.tasks.task import STRINGS, Example, Task
from elmo_tasks.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class MultiLabel(Task):
    """A set of labels for each text, perhaps none.

    An example is `{"tokens": [str], "labels": [str]}`. For prediction, `tokens` are enough.
    """

    name: ClassVar[str] = "multi_label"
    summary: ClassVar[str] = "texts with a set of labels each"
    features: ClassVar[datasets.Features] = datasets.Features({"tokens": STRINGS, "labels": STRINGS})

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
