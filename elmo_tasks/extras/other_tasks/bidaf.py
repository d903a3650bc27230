"""Bidirectional attention flow as first published: a reader that finds answers in a passage.

# B batch, T tokens of the longest passage, Q of the longest question, D features of an encoded token
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor, nn

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.reading import NoAnswerScore, ReadingConfig, ReadingModel, ReadingOutput, TextEncoder
from elmo_tasks.modules.attention import AttentionFlow, masked_softmax
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import make_linear
from elmo_tasks.tasks.reading import ReadingBatch
from elmo_tasks.text.vocabulary import Vocabulary


class BidafConfig(ReadingConfig):
    """Bidirectional attention flow as first published."""

    type: Literal["bidaf"] = "bidaf"
    num_highway_layers: NonNegativeInt = Field(2, description="highway layers between the embedder and the encoder")
    modeling_encoder: EncoderConfig = Field(description="reads the passage joined with the question")
    end_encoder: EncoderConfig = Field(description="reads it again, with the likely starts, for the answer's end")

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> Bidaf:
        return Bidaf(embedder, self)


class Bidaf(ReadingModel):
    """Bidirectional attention flow.

    Source: Seo et al. (2017), "Bidirectional Attention Flow for Machine Comprehension", section 2. As in the authors'
    code and in AllenNLP's, the encoder for ends also reads the joined texts, and the passage as a likely start sees it.
    Departs from them in that dropout is variational and answers have a limited length, unless `max_answer_length` is
    null. ELMo's second mix is concatenated to the first encoder's output, as in `BidafSelfAttention`.
    """

    def __init__(self, embedder: Embedder, config: BidafConfig) -> None:
        super().__init__(embedder, config.max_answer_length, config.window, config.no_answer)
        self.text_encoder = TextEncoder(embedder, config, config.num_highway_layers)
        self.attention = AttentionFlow(self.text_encoder.output_size)
        joined_size = self.attention.output_size  # G
        self.modeling_encoder = config.modeling_encoder.build(joined_size)
        modeled_size = self.modeling_encoder.output_size  # H
        self.end_encoder = config.end_encoder.build(joined_size + 3 * modeled_size)
        self.dropout = VariationalDropout(config.dropout)
        self.start = make_linear(joined_size + modeled_size, 1, bias=False)
        self.end = make_linear(joined_size + self.end_encoder.output_size, 1, bias=False)
        if config.no_answer:
            self.no_answer = NoAnswerScore(modeled_size, self.end_encoder.output_size, modeled_size)

    def forward(self, batch: ReadingBatch) -> ReadingOutput:
        # A stateful biLM carries its state from the question to the passage, as in AllenNLP.
        question = self.text_encoder(self.embedder, batch.question)  # (B, Q, D)
        passage = self.text_encoder(self.embedder, batch.passage)  # (B, T, D)
        mask = batch.passage.mask
        joined = self.attention(passage, question, mask, batch.question.mask)  # (B, T, G)
        modeled = self.dropout(self.modeling_encoder(joined, mask))  # (B, T, H)
        start_logits = self._score(self.start, joined, modeled)
        likely_start = masked_softmax(start_logits, mask).unsqueeze(1) @ modeled  # (B, 1, H)
        parts = [joined, modeled, likely_start.expand_as(modeled), modeled * likely_start]
        of_end = self.dropout(self.end_encoder(torch.cat(parts, dim=2), mask))
        end_logits = self._score(self.end, joined, of_end)
        return self.output((start_logits, modeled), (end_logits, of_end), modeled, mask)

    def _score(self, scores: nn.Linear, joined: Tensor, encoded: Tensor) -> Tensor:
        return scores(self.dropout(torch.cat([joined, encoded], dim=2))).squeeze(2)  # (B, T)
