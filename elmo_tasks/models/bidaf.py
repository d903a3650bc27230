"""Bidirectional attention flow, plain and with self-attention: readers that find answers in a passage.

# B batch, T tokens of the longest passage, D features of an encoded token, M features after matching
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor, nn

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.reading import NoAnswerScore, ReadingConfig, ReadingModel, ReadingOutput, TextEncoder
from elmo_tasks.modules.attention import AttentionFlow, SelfAttention, masked_softmax
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
        self.start = _scores(start_encoder.output_size)
        self.end = _scores(end_encoder.output_size)

    def forward(self, passage: Tensor, mask: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """(B, T, M), (B, T) -> of starts and of ends the logits, (B, T), and what they are scored from, (B, T, ...)."""
        of_start = self.start_encoder(passage, mask)
        of_end = self.end_encoder(torch.cat([passage, of_start], dim=2), mask)
        return (self.start(of_start).squeeze(2), of_start), (self.end(of_end).squeeze(2), of_end)


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
        self.start = _scores(joined_size + modeled_size)
        self.end = _scores(joined_size + self.end_encoder.output_size)
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


def _scores(size: int) -> nn.Linear:
    """From vectors to scores, without a bias, which the softmax over tokens would cancel."""
    linear = nn.Linear(size, 1, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear
