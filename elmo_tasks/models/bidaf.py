"""Bidirectional attention flow with self-attention: a reader that finds answers in a passage.

# B batch, T tokens of the longest passage, D features of an encoded token, M features after matching
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.reading import NoAnswerScore, ReadingConfig, ReadingModel, ReadingOutput, TextEncoder
from elmo_tasks.modules.attention import AttentionFlow, SelfAttention
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.encoders import Encoder, EncoderConfig
from elmo_tasks.modules.feed_forward import make_linear
from elmo_tasks.tasks.reading import ReadingBatch
from elmo_tasks.text.vocabulary import Vocabulary


class BidafSelfAttentionConfig(ReadingConfig):
    """Bidirectional attention flow with self-attention."""

    type: Literal["bidaf_self_attention"] = "bidaf_self_attention"
    matched_size: PositiveInt = Field(
        180, description="features of a passage token after each of the two attentions and its linear layer"
    )
    self_attention_encoder: EncoderConfig = Field(description="reads the passage before it attends to itself")
    start_encoder: EncoderConfig = Field(description="reads the passage for the answer's start")
    end_encoder: EncoderConfig = Field(description="reads the passage and the start encoder's output for its end")

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> BidafSelfAttention:
        return BidafSelfAttention(embedder, self)


class BidafSelfAttention(ReadingModel):
    """Bidirectional attention flow with residual self-attention.

    Source: the paper's reader for SQuAD (Peters et al. 2018, section 4 and supplement), after Clark and Gardner (2018),
    "Simple and Effective Multi-Paragraph Reading Comprehension", section 3.1. The same encoder reads passage and
    question; ELMo's second mix is concatenated to its output. The passage attends to the question and to itself; two
    chained encoders score the answer's start and end. Where the papers leave a choice, it is that of the authors' code:
    the texts are joined as by Seo et al. (2017), and self-attention may attend to nothing.
    """

    def __init__(self, embedder: Embedder, config: BidafSelfAttentionConfig) -> None:
        super().__init__(embedder, config.max_answer_length, config.window, config.no_answer)
        # A seed gives the same weights only while the layers are made in this order.
        size = config.matched_size  # M
        start_encoder = config.start_encoder.build(size)
        self.text_encoder = TextEncoder(embedder, config)
        self_attention = SelfAttentionBlock(config.self_attention_encoder.build(size), size, config.dropout)
        span_scores = ChainedSpanScores(start_encoder, config.end_encoder.build(size + start_encoder.output_size))
        self.attention = AttentionFlow(self.text_encoder.output_size)
        self.matching = make_linear(self.attention.output_size, size)
        self.self_attention = self_attention
        self.dropout = VariationalDropout(config.dropout)
        self.span_scores = span_scores
        if config.no_answer:
            sizes = start_encoder.output_size, span_scores.end_encoder.output_size
            self.no_answer = NoAnswerScore(*sizes, size)

    def forward(self, batch: ReadingBatch) -> ReadingOutput:
        passage = self.text_encoder(self.embedder, batch.passage)  # (B, T, D)
        question = self.text_encoder(self.embedder, batch.question)  # (B, Q, D)
        mask = batch.passage.mask
        joined = self.attention(passage, question, mask, batch.question.mask)  # (B, T, 4D)
        matched = self.dropout(self.self_attention(self.matching(joined).relu(), mask))  # (B, T, M)
        start, end = self.span_scores(matched, mask)
        return self.output(start, end, matched, mask)


class SelfAttentionBlock(nn.Module):
    """An encoder, variational dropout, self-attention and a linear layer, added to their input of `size` features."""

    def __init__(self, encoder: Encoder, size: int, dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = VariationalDropout(dropout)
        self.attention = SelfAttention(encoder.output_size)
        self.projection = make_linear(3 * encoder.output_size, size)

    def forward(self, passage: Tensor, mask: Tensor) -> Tensor:
        """(B, T, M), (B, T) -> (B, T, M)."""
        encoded = self.dropout(self.encoder(passage, mask))  # (B, T, H)
        attended = self.attention(encoded, mask)  # (B, T, H)
        return passage + self.projection(torch.cat([encoded, attended, encoded * attended], dim=2)).relu()


class ChainedSpanScores(nn.Module):
    """Scores of starts from an encoder's output, and of ends from a second encoder, which also reads that output."""

    def __init__(self, start_encoder: Encoder, end_encoder: Encoder) -> None:
        super().__init__()
        self.start_encoder = start_encoder
        self.end_encoder = end_encoder
        # Without a bias, which the softmax over tokens would cancel.
        self.start = make_linear(start_encoder.output_size, 1, bias=False)
        self.end = make_linear(end_encoder.output_size, 1, bias=False)

    def forward(self, passage: Tensor, mask: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """(B, T, M), (B, T) -> of starts and of ends the logits, (B, T), and what they are scored from, (B, T, ...)."""
        of_start = self.start_encoder(passage, mask)
        of_end = self.end_encoder(torch.cat([passage, of_start], dim=2), mask)
        return (self.start(of_start).squeeze(2), of_start), (self.end(of_end).squeeze(2), of_end)
