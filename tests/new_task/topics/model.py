"""The mean of a sentence's vectors, and a score for each topic.

# B batch, T tokens, D features of a token, K topics
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from torch import Tensor, nn

from elmo_tasks.data_readers.sst import ClassificationBatch
from elmo_tasks.metrics import Accuracy, Metric
from elmo_tasks.models import ModelConfig, TaskModel
from elmo_tasks.models.classification import known_labels, label_loss, label_predictions
from elmo_tasks.modules import Embedder
from elmo_tasks.modules.pooling import mean_pool
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary


class TopicModelConfig(ModelConfig):
    """A linear classifier of mean vectors."""

    type: Literal["mean_of_vectors"] = "mean_of_vectors"

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> TopicModel:
        return TopicModel(embedder, known_labels(vocabulary))


@dataclasses.dataclass(frozen=True)
class TopicOutput(TensorRecord):
    """The scores of a batch's topics."""

    logits: Tensor  # (B, K)


class TopicModel(TaskModel[ClassificationBatch, TopicOutput]):
    """A linear classifier of the mean of a sentence's vectors, ELMo's among them."""

    def __init__(self, embedder: Embedder, topics: tuple[str, ...]) -> None:
        super().__init__(embedder)
        self.topics = topics
        self.scores = nn.Linear(embedder.output_size, len(topics))

    def forward(self, batch: ClassificationBatch) -> TopicOutput:
        vectors = self.embedder(batch.tokens).inputs  # (B, T, D)
        return TopicOutput(logits=self.scores(mean_pool(vectors, batch.tokens.mask)))

    def loss(self, output: TopicOutput, batch: ClassificationBatch) -> Tensor:
        return label_loss(output.logits, batch.labels)

    def decode(
        self, output: TopicOutput, batch: ClassificationBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        return label_predictions(output.logits, self.topics, probabilities=probabilities)

    def build_metric(self) -> Metric:
        return Accuracy("label")
