"""The biattentive classification network: it aligns a text with itself, pools it and gives it a label.

# B batch, T tokens of the longest text, D features of a token, K labels
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import LabelModel, LabelModelConfig, add_attention, label_predictions
from elmo_tasks.models.model import Probability
from elmo_tasks.modules.attention import align_with_itself
from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import FeedForwardConfig, make_linear
from elmo_tasks.modules.pooling import AttentivePooling, max_pool, mean_pool, min_pool
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.classification import LABELS, Classification, ClassificationBatch
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary


class BiattentiveClassifierConfig(LabelModelConfig):
    """The biattentive classification network (BCN) for the label of a text."""

    type: Literal["bcn"] = "bcn"
    task: ClassVar[Task] = Classification()
    embedding_dropout: Probability = Field(0.0, description="dropout on the token vectors")
    pre_encoder: FeedForwardConfig = Field(description="layers that are applied to each token vector separately")
    encoder: EncoderConfig = Field(description="the encoder before the alignment")
    integrator: EncoderConfig = Field(description="the encoder of the tokens together with what they are aligned with")
    integrator_dropout: Probability = Field(0.0, description="dropout on the integrator's output")
    output: FeedForwardConfig = Field(description="layers between the pooled text and the scores of the labels")

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> BiattentiveClassifier:
        return BiattentiveClassifier(embedder, self, vocabulary.labels[LABELS])


@dataclasses.dataclass(frozen=True)
class BiattentiveClassifierOutput(TensorRecord):
    """The scores of the labels, and what the pooling attended to."""

    logits: Tensor  # (B, K)
    attention: Tensor  # (B, T), the weights of the attentive pooling, zero in the padding
    mask: Tensor  # (B, T) bool


class BiattentiveClassifier(LabelModel[ClassificationBatch, BiattentiveClassifierOutput]):
    """The biattentive classification network.

    Source: McCann et al. (2017), "Learned in Translation: Contextualized Word Vectors", section 5, for tasks with one
    text: the two sequences that it aligns are the same. As in Peters et al. 2018, plain feed-forward layers replace
    the maxout network at the end; `activation: 'maxout'` restores it, without batch normalization. A second mix of
    ELMo is concatenated to the output of the second biLSTM, the integrator, after its dropout.
    """

    task = Classification()

    def __init__(self, embedder: Embedder, config: BiattentiveClassifierConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder, config, labels)
        self.embedding_dropout = Dropout(config.embedding_dropout)
        self.pre_encoder = config.pre_encoder.build(embedder.output_size)
        self.encoder = config.encoder.build(self.pre_encoder.output_size)
        self.integrator = config.integrator.build(3 * self.encoder.output_size)
        self.integrator_dropout = Dropout(config.integrator_dropout)
        integrated_size = embedder.joined_size(self.integrator.output_size)
        self.attentive_pooling = AttentivePooling(integrated_size)
        self.output = config.output.build(4 * integrated_size)
        self.scores = make_linear(self.output.output_size, len(labels))

    def forward(self, batch: ClassificationBatch) -> BiattentiveClassifierOutput:
        mask = batch.tokens.mask
        embedded = self.embedder(batch.tokens)
        encoded = self.encoder(self.pre_encoder(self.embedding_dropout(embedded.inputs)), mask)
        aligned = align_with_itself(encoded, mask)
        joined = torch.cat([encoded, encoded - aligned, encoded * aligned], dim=2)
        integrated = embedded.join(self.integrator_dropout(self.integrator(joined, mask)))  # (B, T, D)
        attended, attention = self.attentive_pooling(integrated, mask)  # (B, D), (B, T)
        pooled = [pool(integrated, mask) for pool in (max_pool, mean_pool, min_pool)]  # (B, D) each
        logits = self.scores(self.output(torch.cat([*pooled, attended], dim=1)))
        return BiattentiveClassifierOutput(logits=logits, attention=attention.float(), mask=mask)

    def decode(
        self, output: BiattentiveClassifierOutput, batch: ClassificationBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The most probable label of each text: `{"label": ..., "probabilities": {...}, "attention": [...]}`.

        `attention` has a weight for each token, its share in the attentive pooling; the weights sum to 1.
        """
        predictions = label_predictions(output.logits, self.labels, self.temperature if probabilities else None)
        if probabilities:
            add_attention(predictions, output.attention, output.mask)
        return predictions
