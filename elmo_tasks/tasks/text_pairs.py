"""Text pairs: a label for each pair of texts, such as a premise and a hypothesis.

# B batch
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import datasets
from torch import Tensor

from elmo_tasks.metrics import Accuracy, Metric
from elmo_tasks.tasks.classification import LABELS, label_tensor
from elmo_tasks.tasks.task import STRING, STRINGS, Batch, Example, Task
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class TextPairsBatch(Batch):
    """Pairs of texts with a label each. Premises and hypotheses are padded separately."""

    premise: Tokens
    hypothesis: Tokens
    labels: Tensor | None  # (B,) int64, ids of the vocabulary's "labels"; None if not known


@dataclasses.dataclass(frozen=True)
class TextPairs(Task):
    """A label for each pair of texts.

    An example is `{"premise": [str], "hypothesis": [str], "label": str}`. For prediction, the texts are enough.
    """

    summary: ClassVar[str] = "pairs of texts with a label each"
    features: ClassVar[datasets.Features] = datasets.Features(
        {"premise": STRINGS, "hypothesis": STRINGS, "label": STRING}
    )

    def texts(self, example: Example) -> Iterable[Sequence[str]]:
        return example["premise"], example["hypothesis"]

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        return {LABELS: (example["label"],)}

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> TextPairsBatch:
        return TextPairsBatch(
            examples=examples,
            premise=vocabulary.index_tokens([example["premise"] for example in examples]),
            hypothesis=vocabulary.index_tokens([example["hypothesis"] for example in examples]),
            labels=label_tensor(examples, vocabulary),
        )

    def compared_labels(self, record: Mapping[str, Any]) -> Sequence[str]:
        return (record["label"],)

    def build_metric(self) -> Metric:
        return Accuracy("label")
