"""Regression: a number for each text, such as a rating, or for each pair of texts, such as their similarity.

# B batch
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.metrics import Correlation, Metric
from elmo_tasks.tasks.classification import ClassificationBatch
from elmo_tasks.tasks.task import NUMBER, STRINGS, Example, Task
from elmo_tasks.tasks.text_pairs import TextPairsBatch
from elmo_tasks.text.vocabulary import Vocabulary


class _Numbers:
    """What the tasks have in common whose examples have a number and no labels."""

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        return {}

    def gold_labels(self, example: Example) -> Sequence[str]:
        return ()

    def build_metric(self) -> Metric:
        return Correlation()


@dataclasses.dataclass(frozen=True)
class Regression(_Numbers, Task):
    """A number for each text. An example is `{"tokens": [str], "score": float}`; to predict, `tokens` are enough."""

    name: ClassVar[str] = "regression"
    summary: ClassVar[str] = "texts with a number each"
    features: ClassVar[Mapping[str, Any]] = {"tokens": STRINGS, "score": NUMBER}

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> ClassificationBatch:
        tokens = vocabulary.index_tokens([example["tokens"] for example in examples])
        return ClassificationBatch(examples=examples, tokens=tokens, labels=_scores(examples))


@dataclasses.dataclass(frozen=True)
class PairRegression(_Numbers, Task):
    """A number for each pair of texts.

    An example is `{"premise": [str], "hypothesis": [str], "score": float}`. For prediction, the texts are enough.
    """

    name: ClassVar[str] = "pair_regression"
    summary: ClassVar[str] = "pairs of texts with a number each"
    features: ClassVar[Mapping[str, Any]] = {"premise": STRINGS, "hypothesis": STRINGS, "score": NUMBER}
    sentence_columns: ClassVar[tuple[str, ...]] = ("premise", "hypothesis")

    def texts(self, example: Example) -> Iterable[Sequence[str]]:
        return example["premise"], example["hypothesis"]

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> TextPairsBatch:
        return TextPairsBatch(
            examples=examples,
            premise=vocabulary.index_tokens([example["premise"] for example in examples]),
            hypothesis=vocabulary.index_tokens([example["hypothesis"] for example in examples]),
            labels=_scores(examples),
        )


def _scores(examples: Sequence[Example]) -> Tensor | None:
    """The examples' `"score"`, (B,) float64, in which large numbers keep their digits; None unless all are known."""
    if any(example.get("score") is None for example in examples):
        return None
    return torch.tensor([example["score"] for example in examples], dtype=torch.float64)  # (B,)
