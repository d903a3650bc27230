"""The mean of a sentence's vectors, and a score for each topic.

# B batch, T tokens, D features of a token, K topics
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.models import Embedder, ModelConfig, TaskModel
from elmo_tasks.modules.pooling import mean_pool
from elmo_tasks.tasks import Task
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary
from topics.task import TOPICS, Topics, TopicsBatch


class TopicModelConfig(ModelConfig):
    """A linear classifier of mean vectors."""

    type: Literal["mean_of_vectors"] = "mean_of_vectors"
    task: ClassVar[Task] = Topics()

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> TopicModel:
        return TopicModel(embedder, vocabulary.labels[TOPICS])


@dataclasses.dataclass(frozen=True)
class TopicOutput(TensorRecord):
    """The scores of a batch's topics."""

    logits: Tensor  # (B, K)


class TopicModel(TaskModel[TopicsBatch, TopicOutput]):
    """A linear classifier of the mean of a sentence's vectors, ELMo's among them."""

    task = Topics()

    def __init__(self, embedder: Embedder, topics: tuple[str, ...]) -> None:
        super().__init__(embedder)
        self.topics = topics
        self.scores = nn.Linear(embedder.output_size, len(topics))

    def forward(self, batch: TopicsBatch) -> TopicOutput:
        vectors = self.embedder(batch.tokens).inputs  # (B, T, D)
        return TopicOutput(logits=self.scores(mean_pool(vectors, batch.tokens.mask)))

    def loss(self, output: TopicOutput, batch: TopicsBatch) -> Tensor:
        if batch.topics is None:
            raise ValueError("the batch has no gold topics")
        return functional.cross_entropy(output.logits.float(), batch.topics)

    def decode(self, output: TopicOutput, batch: TopicsBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        values, rows = output.logits.float().softmax(1).max(1)  # (B,), (B,)
        return [
            {"topic": self.topics[row], "probability": value}
            for row, value in zip(rows.tolist(), values.tolist(), strict=True)
        ]
