"""The topic of a sentence: what its reader, head and predictor agree on.

# B batch
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.metrics import Accuracy, Metric
from elmo_tasks.tasks.task import STRING, STRINGS, Batch, Example, Task
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary

TOPICS = "topics"  # the namespace of the labels


@dataclasses.dataclass(frozen=True)
class TopicsBatch(Batch):
    """Sentences with a topic each."""

    tokens: Tokens
    topics: Tensor | None  # (B,) int64, None where they are not known


@dataclasses.dataclass(frozen=True)
class Topics(Task):
    """The topic of a sentence. An example is `{"tokens": [str], "topic": str}`; for prediction, `tokens` are enough."""

    name: ClassVar[str] = "topics"
    summary: ClassVar[str] = "sentences with a topic each"
    features: ClassVar[Mapping[str, Any]] = {"tokens": STRINGS, "topic": STRING}

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        return {TOPICS: (example["topic"],)}

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> TopicsBatch:
        topics = None
        if all("topic" in example for example in examples):
            topics = torch.tensor([vocabulary.label_id(TOPICS, example["topic"]) for example in examples])  # (B,)
        tokens = vocabulary.index_tokens([example["tokens"] for example in examples])
        return TopicsBatch(examples=examples, tokens=tokens, topics=topics)

    def build_metric(self) -> Metric:
        return Accuracy("topic")
