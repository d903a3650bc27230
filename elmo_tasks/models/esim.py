"""ESIM: does a premise entail a hypothesis? Both are encoded, aligned with each other, compared and pooled.

# B batch, T tokens of the longest text, T1 of the longest premise, T2 of the longest hypothesis, D features of a token
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.inference import InferenceModel, InferenceOutput
from elmo_tasks.models.labels import LabelModelConfig
from elmo_tasks.models.model import Probability
from elmo_tasks.modules.attention import align
from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import FeedForwardConfig, make_linear
from elmo_tasks.modules.pooling import max_pool, mean_pool
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.tasks.text_pairs import TextPairs, TextPairsBatch
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary


class EsimConfig(LabelModelConfig):
    """The enhanced sequential inference model (ESIM) for the label of a premise and a hypothesis."""

    type: Literal["esim"] = "esim"
    task: ClassVar[Task] = TextPairs()
    encoder: EncoderConfig = Field(description="encodes the premise and the hypothesis separately")
    alignment_dropout: Probability = Field(
        0.0, description="dropout on each token vector joined with what it is aligned with"
    )
    projection: FeedForwardConfig = Field(description="layers that reduce these joined vectors for the composition")
    composition: EncoderConfig = Field(description="encodes the premise and the hypothesis after their alignment")
    dropout: Probability = Field(0.0, description="dropout on the pooled pair, before the output layers")
    output: FeedForwardConfig = Field(description="layers between the pooled pair and the scores of the labels")

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> Esim:
        return Esim(embedder, self, vocabulary.labels[LABELS])


class Esim(InferenceModel):
    """The enhanced sequential inference model.

    Source: Chen et al. (2017), "Enhanced LSTM for Natural Language Inference", section 3, without the variant that
    reads parses. As in Peters et al. 2018, a second mix of ELMo is concatenated to the output of the lowest biLSTM, the
    encoder, and so takes part in the alignment.

    Arguments:
        embedder: reads the tokens.
        config: the settings of the layers.
        labels: the K labels by their ids.
    """

    def __init__(self, embedder: Embedder, config: EsimConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder, config, labels)
        self.encoder = config.encoder.build(embedder.output_size)
        self.alignment_dropout = Dropout(config.alignment_dropout)
        self.projection = config.projection.build(4 * embedder.joined_size(self.encoder.output_size))
        self.composition = config.composition.build(self.projection.output_size)
        self.dropout = Dropout(config.dropout)
        self.output = config.output.build(4 * self.composition.output_size)
        self.scores = make_linear(self.output.output_size, len(labels))

    def forward(self, batch: TextPairsBatch) -> InferenceOutput:
        premise_mask, hypothesis_mask = batch.premise.mask, batch.hypothesis.mask
        premise = self._encode(batch.premise)  # (B, T1, D)
        hypothesis = self._encode(batch.hypothesis)  # (B, T2, D)
        alignment = align(premise, hypothesis, premise_mask, hypothesis_mask)
        pooled_premise = self._compose(premise, alignment.first, premise_mask)
        pooled_hypothesis = self._compose(hypothesis, alignment.second, hypothesis_mask)
        pooled = self.dropout(torch.cat([pooled_premise, pooled_hypothesis], dim=1))
        return InferenceOutput(logits=self.scores(self.output(pooled)), alignment=alignment)

    def _encode(self, tokens: Tokens) -> Tensor:
        """The tokens of one side in their context, (B, T, D)."""
        embedded = self.embedder(tokens)
        return embedded.join(self.encoder(embedded.inputs, tokens.mask))

    def _compose(self, encoded: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """The mean and maximum of one side, compared with `aligned`, the other side as each token sees it."""
        compared = torch.cat([encoded, aligned, encoded - aligned, encoded * aligned], dim=2)  # (B, T, 4D)
        composed = self.composition(self.projection(self.alignment_dropout(compared)), mask)
        return torch.cat([mean_pool(composed, mask), max_pool(composed, mask)], dim=1)
