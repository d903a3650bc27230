"""A plain classifier: it encodes a text, pools it to one vector and scores the labels.

# B batch, T tokens of the longest text, D features of a token, P features of a pooled text, K labels
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from elmo_tasks.elmo.dropout import Dropout
from elmo_tasks.models.labels import add_attention, label_loss, label_predictions
from elmo_tasks.models.model import ModelConfig, Probability, TaskModel
from elmo_tasks.modules.embedder import Embedder
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import FeedForwardConfig, make_linear
from elmo_tasks.modules.pooling import Pooling, PoolingName
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.classification import LABELS, Classification, ClassificationBatch
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary


class TextClassifierConfig(ModelConfig):
    """A plain classifier for the label of a text: an encoder, a pooling and a linear layer."""

    type: Literal["text_classifier"] = "text_classifier"
    task: ClassVar[Task] = Classification()
    embedding_dropout: Probability = Field(0.0, description="dropout on the token vectors")
    encoder: EncoderConfig | None = Field(None, description="encodes the tokens in their context; null: none does")
    pooling: PoolingName = Field(
        "max",
        description="makes one vector of a text's tokens: their 'mean', their 'max'imum, a sum weighted by learned "
        "'attention', or the 'last' token's vector together with the first one's, where the directions of an encoder "
        "end",
    )
    dropout: Probability = Field(0.0, description="dropout on the pooled text")
    output: FeedForwardConfig | None = Field(
        None, description="layers between the pooled text and the scores of the labels; null: none"
    )

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> TextClassifier:
        return TextClassifier(embedder, self, vocabulary.labels[LABELS])


@dataclasses.dataclass(frozen=True)
class TextClassifierOutput(TensorRecord):
    """The scores of the labels and, with attentive pooling, what it attended to."""

    logits: Tensor  # (B, K)
    attention: Tensor | None  # (B, T), zero in the padding
    mask: Tensor  # (B, T) bool


class TextClassifier(TaskModel[ClassificationBatch, TextClassifierOutput]):
    """A plain classifier: what is between the embedder and the linear layer can be left out, except for the pooling.

    A second mix of ELMo is concatenated to the output of the encoder or, without one, to the token vectors.

    Arguments:
        embedder: reads the tokens.
        config: the settings of the layers.
        labels: the K labels by their ids.
    """

    task = Classification()

    def __init__(self, embedder: Embedder, config: TextClassifierConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder)
        self.labels = labels
        self.embedding_dropout = Dropout(config.embedding_dropout)
        self.encoder = config.encoder.build(embedder.output_size) if config.encoder else None
        encoded_size = self.encoder.output_size if self.encoder else embedder.output_size
        self.pooling = Pooling(config.pooling, embedder.joined_size(encoded_size))
        self.dropout = Dropout(config.dropout)
        self.output = config.output.build(self.pooling.output_size) if config.output else None
        self.scores = make_linear(self.output.output_size if self.output else self.pooling.output_size, len(labels))

    def forward(self, batch: ClassificationBatch) -> TextClassifierOutput:
        mask = batch.tokens.mask
        embedded = self.embedder(batch.tokens)
        vectors = self.embedding_dropout(embedded.inputs)  # (B, T, D)
        encoded = self.encoder(vectors, mask) if self.encoder else vectors
        pooled, attention = self.pooling(embedded.join(encoded), mask)  # (B, P), (B, T) or None
        pooled = self.dropout(pooled)
        logits = self.scores(self.output(pooled) if self.output else pooled)
        return TextClassifierOutput(
            logits=logits, attention=None if attention is None else attention.float(), mask=mask
        )

    def loss(self, output: TextClassifierOutput, batch: ClassificationBatch) -> Tensor:
        return label_loss(output.logits, batch.labels)

    def decode(
        self, output: TextClassifierOutput, batch: ClassificationBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The most probable label of each text: `{"label": ..., "probabilities": {...}}`.

        With attentive pooling there is also `attention`, the share of each token; the shares sum to 1.
        """
        predictions = label_predictions(output.logits, self.labels, probabilities)
        if probabilities and output.attention is not None:
            add_attention(predictions, output.attention, output.mask)
        return predictions
