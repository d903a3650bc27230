"""A tagger that needs no training: names are runs of capitalized tokens."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_tasks.models.model import TaskModel
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.tasks.tagging import Tagging, TaggingBatch
from elmo_tasks.text.tag_schemes import Span, tags_of_spans
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import VocabularyConfig


@dataclasses.dataclass(frozen=True)
class CapitalOutput(TensorRecord):
    mask: Tensor


class CapitalTagger(TaskModel[TaggingBatch, CapitalOutput]):
    """Remembers the shapes of the batches that it saw. A tag's probability is told by its token's length."""

    task = Tagging("BIOUL")

    def __init__(self) -> None:
        super().__init__(nn.Linear(1, 1))
        self.shapes: list[tuple[int, ...]] = []

    def forward(self, batch: TaggingBatch) -> CapitalOutput:
        assert not self.training
        assert torch.is_inference_mode_enabled()
        assert batch.tags is None
        self.shapes.append(tuple(batch.tokens.mask.shape))
        return CapitalOutput(mask=batch.tokens.mask)

    def loss(self, output: CapitalOutput, batch: TaggingBatch) -> Tensor:
        raise NotImplementedError

    def decode(self, output: CapitalOutput, batch: TaggingBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        return [self._tag(tokens) for tokens in batch.tokens.texts]

    @staticmethod
    def _tag(tokens: list[str]) -> dict[str, Any]:
        spans, start = [], None
        for position, token in enumerate([*tokens, "."]):
            if token[0].isupper():
                start = position if start is None else start
            elif start is not None:
                spans.append(Span("NAME", start, position - 1))
                start = None
        return {
            "tags": tags_of_spans(spans, len(tokens), "BIOUL"),
            "probabilities": [1 / (1 + len(token)) for token in tokens],
        }


@pytest.fixture
def predictor() -> TaggerPredictor:
    examples = [{"tokens": ["Ann", "left"], "tags": ["U-NAME", "O"], "document": 0, "sentence": 0}]
    vocabulary = VocabularyConfig().build(CapitalTagger.task, examples, [])
    return TaggerPredictor(CapitalTagger(), vocabulary, batch_tokens=12)
