"""Decomposable attention: does a premise entail a hypothesis?

# B batch, T tokens of the longest text, T1 of the longest premise, T2 of the longest hypothesis, D features of a token,
# A of a token that is being aligned, H of a comparison
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.inference import InferenceModel, InferenceOutput
from elmo_tasks.models.labels import LabelModelConfig
from elmo_tasks.modules.attention import align
from elmo_tasks.modules.feed_forward import FeedForwardConfig, make_linear
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.tasks.text_pairs import TextPairs, TextPairsBatch
from elmo_tasks.text.vocabulary import Vocabulary


class DecomposableAttentionConfig(LabelModelConfig):
    """Decomposable attention for the label of a premise and a hypothesis."""

    type: Literal["decomposable_attention"] = "decomposable_attention"
    end_token: str | None = Field(
        None,
        min_length=1,
        description="a token at the end of each text, so that a token can be aligned with it instead of with a real "
        "one; the reader's `end_token`",
    )
    attend: FeedForwardConfig = Field(description="layers before the dot products that align the tokens")
    compare: FeedForwardConfig = Field(description="layers that compare each token with what it is aligned with")
    output: FeedForwardConfig | None = Field(
        None, description="layers between the summed comparisons and the scores of the labels"
    )

    @property
    def task(self) -> Task:
        return TextPairs(self.end_token)

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> DecomposableAttention:
        return DecomposableAttention(embedder, self, vocabulary.labels[LABELS])


class DecomposableAttention(InferenceModel):
    """The decomposable attention model.

    Source: Parikh et al. (2016), "A Decomposable Attention Model for Natural Language Inference", section 3, without
    attention within a sentence. Their token for nothing is the first of each sentence; AllenNLP's, as here, the last.
    A second mix of ELMo is concatenated to the first inputs for the comparison, not for the alignment.
    """

    def __init__(self, embedder: Embedder, config: DecomposableAttentionConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder, config, labels)
        self.task = config.task
        self.attend = config.attend.build(embedder.output_size)
        self.compare = config.compare.build(2 * embedder.joined_size(embedder.output_size))
        compared_size = 2 * self.compare.output_size
        self.output = config.output.build(compared_size) if config.output else None
        self.scores = make_linear(self.output.output_size if self.output else compared_size, len(labels))

    def forward(self, batch: TextPairsBatch) -> InferenceOutput:
        premise_mask, hypothesis_mask = batch.premise.mask, batch.hypothesis.mask
        embedded = self.embedder(batch.premise), self.embedder(batch.hypothesis)
        attending = [self.attend(side.inputs) for side in embedded]  # (B, T1, A), (B, T2, A)
        premise, hypothesis = (side.join(side.inputs) for side in embedded)  # (B, T1, D), (B, T2, D)
        alignment = align(attending[0], attending[1], premise_mask, hypothesis_mask, values=(premise, hypothesis))
        compared_premise = self._compare(premise, alignment.first, premise_mask)  # (B, H)
        compared_hypothesis = self._compare(hypothesis, alignment.second, hypothesis_mask)  # (B, H)
        summed = torch.cat([compared_premise, compared_hypothesis], dim=1)
        logits = self.scores(self.output(summed) if self.output else summed)
        return InferenceOutput(logits=logits, alignment=alignment)

    def _compare(self, tokens: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), (B, T, D), (B, T) -> (B, H): the tokens' comparisons with what they are aligned with, summed."""
        compared = self.compare(torch.cat([tokens, aligned], dim=2))  # (B, T, H)
        return compared.masked_fill(~mask.unsqueeze(2), 0).sum(1)
