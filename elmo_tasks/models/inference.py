"""Does a premise entail a hypothesis? ESIM, and what models share that align the tokens of both.

# B batch, T tokens of the longest text, T1 of the longest premise, T2 of the longest hypothesis, D features of a token,
# K labels
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import LabelModel, LabelModelConfig, label_predictions
from elmo_tasks.models.model import Probability
from elmo_tasks.modules.attention import SoftAlignment, align
from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import FeedForwardConfig, make_linear
from elmo_tasks.modules.pooling import max_pool, mean_pool
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.tasks.text_pairs import TextPairs, TextPairsBatch
from elmo_tasks.text.tokens import TensorRecord, Tokens
from elmo_tasks.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class InferenceOutput(TensorRecord):
    """The scores of the labels, and how the tokens of a pair attend to each other."""

    logits: Tensor  # (B, K)
    alignment: SoftAlignment  # of the premise with the hypothesis


class InferenceModel(LabelModel[TextPairsBatch, InferenceOutput]):
    """Labels pairs of texts, whose tokens it aligns with each other."""

    task: Task = TextPairs()

    def decode(
        self, output: InferenceOutput, batch: TextPairsBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The most probable label of each pair: `{"label": ..., "probabilities": {...}}` and the alignment.

        `premise_attention` has a row for each token of the premise: its attention to each token of the hypothesis,
        which sums to 1. `hypothesis_attention` is the same from the other side. If texts have an end token, it has no
        row and no column; what a row lacks to 1 is the attention to it.
        """
        predictions = label_predictions(output.logits, self.labels, self.temperature if probabilities else None)
        if probabilities:
            for row, (prediction, example) in enumerate(zip(predictions, batch.examples, strict=True)):
                premise, hypothesis = len(example["premise"]), len(example["hypothesis"])
                weights = output.alignment.first_weights[row, :premise, :hypothesis]
                prediction["premise_attention"] = weights.float().clamp(max=1).tolist()
                weights = output.alignment.second_weights[row, :hypothesis, :premise]
                prediction["hypothesis_attention"] = weights.float().clamp(max=1).tolist()
        return predictions


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
