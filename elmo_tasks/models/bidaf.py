"""Bidirectional attention flow, plain and with self-attention: readers that find answers in a passage.

# B batch, T tokens of the longest passage, D features of a token read in its context, M features after matching
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from elmo_tasks.models.reading import ReadingConfig, ReadingModel, ReadingOutput, TextEncoder
from elmo_tasks.modules.attention import AttentionFlow, SelfAttention, masked_softmax
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.embedder import Embedder
from elmo_tasks.modules.encoders import Encoder, EncoderConfig
from elmo_tasks.tasks.reading import ReadingBatch
from elmo_tasks.text.vocabulary import Vocabulary


class BidafSelfAttentionConfig(ReadingConfig):
    """Bidirectional attention flow with self-attention."""

    type: Literal["bidaf_self_attention"] = "bidaf_self_attention"
    matched_size: PositiveInt = Field(
        180,
        description="features of a passage's token after each of the two attentions: outputs of their linear layers",
    )
    self_attention_encoder: EncoderConfig = Field(description="reads the passage before it attends to itself")
    start_encoder: EncoderConfig = Field(description="reads the passage for the answer's start")
    end_encoder: EncoderConfig = Field(description="for its end, with the start's encoder's output beside the passage")

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> BidafSelfAttention:
        start_encoder = self.start_encoder.build(self.matched_size)
        return BidafSelfAttention(
            embedder,
            TextEncoder(embedder, self.encoder.build(embedder.output_size), self.dropout),
            SelfAttentionBlock(self.self_attention_encoder.build(self.matched_size), self.matched_size, self.dropout),
            ChainedSpanScores(start_encoder, self.end_encoder.build(self.matched_size + start_encoder.output_size)),
            dropout=self.dropout,
            max_answer_length=self.max_answer_length,
            window=self.window,
        )


class BidafSelfAttention(ReadingModel):
    """Bidirectional attention flow with residual self-attention.

    Source: the paper's reader for SQuAD (Peters et al. 2018, section 4 and supplement), after Clark and Gardner (2018),
    "Simple and Effective Multi-Paragraph Reading Comprehension", section 3.1. Passage and question go through the same
    encoder, whose output has ELMo's second mix beside it; the passage attends to the question, and to itself; two
    chained encoders score the answer's start and end. Where the papers leave a choice, it is that of the authors' code:
    the texts are joined as by Seo et al. (2017), and self-attention may attend to nothing.

    Arguments:
        embedder: what passage and question are read with.
        text_encoder: encodes both.
        self_attention: over the passage that has seen the question; its size M is what that is reduced to.
        span_scores: scores starts and ends.
        dropout: probability of variational dropout before the scores; on the texts as encoded it is the encoder's.
        max_answer_length: most tokens of a predicted answer.
        window: see `ReadingConfig.window`.
    """

    def __init__(
        self,
        embedder: Embedder,
        text_encoder: TextEncoder,
        self_attention: SelfAttentionBlock,
        span_scores: ChainedSpanScores,
        *,
        dropout: float,
        max_answer_length: int,
        window: int,
    ) -> None:
        super().__init__(embedder, max_answer_length, window)
        self.text_encoder = text_encoder
        self.attention = AttentionFlow(text_encoder.output_size)
        self.matching = nn.Linear(self.attention.output_size, self_attention.size)
        _initialize(self.matching)
        self.self_attention = self_attention
        self.dropout = VariationalDropout(dropout)
        self.span_scores = span_scores

    def forward(self, batch: ReadingBatch) -> ReadingOutput:
        passage = self.text_encoder(self.embedder, batch.passage)  # (B, T, D)
        question = self.text_encoder(self.embedder, batch.question)  # (B, Q, D)
        mask = batch.passage.mask
        joined = self.attention(passage, question, mask, batch.question.mask)  # (B, T, 4D)
        matched = self.self_attention(self.matching(joined).relu(), mask)  # (B, T, M)
        start_logits, end_logits = self.span_scores(self.dropout(matched), mask)
        return ReadingOutput(start_logits=start_logits, end_logits=end_logits, mask=mask)


class SelfAttentionBlock(nn.Module):
    """An encoder, self-attention and a linear layer, added to what comes in.

    Arguments:
        encoder: of inputs of M features.
        size: M.
        dropout: probability of variational dropout on the encoder's output.
    """

    def __init__(self, encoder: Encoder, size: int, dropout: float) -> None:
        super().__init__()
        self.size = size
        self.encoder = encoder
        self.dropout = VariationalDropout(dropout)
        self.attention = SelfAttention(encoder.output_size)
        self.projection = nn.Linear(3 * encoder.output_size, size)
        _initialize(self.projection)

    def forward(self, passage: Tensor, mask: Tensor) -> Tensor:
        """(B, T, M), (B, T) -> (B, T, M)."""
        encoded = self.dropout(self.encoder(passage, mask))  # (B, T, H)
        attended = self.attention(encoded, mask)  # (B, T, H)
        return passage + self.projection(torch.cat([encoded, attended, encoded * attended], dim=2)).relu()


class ChainedSpanScores(nn.Module):
    """Scores of starts from one encoder's output, scores of ends from a second one's, which reads the first's too.

    Arguments:
        start_encoder: of inputs of M features.
        end_encoder: of inputs of M features and the output of `start_encoder`.
    """

    def __init__(self, start_encoder: Encoder, end_encoder: Encoder) -> None:
        super().__init__()
        self.start_encoder = start_encoder
        self.end_encoder = end_encoder
        self.start = _scores(start_encoder.output_size)
        self.end = _scores(end_encoder.output_size)

    def forward(self, passage: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, M), (B, T) -> the logits of starts and of ends, (B, T) each."""
        of_start = self.start_encoder(passage, mask)
        of_end = self.end_encoder(torch.cat([passage, of_start], dim=2), mask)
        return self.start(of_start).squeeze(2), self.end(of_end).squeeze(2)


class BidafConfig(ReadingConfig):
    """Bidirectional attention flow as first published."""

    type: Literal["bidaf"] = "bidaf"
    num_highway_layers: Annotated[int, Field(ge=0, description="between the embedder and the encoder")] = 2
    modeling_encoder: EncoderConfig = Field(description="reads the passage that has seen the question")
    end_encoder: EncoderConfig = Field(description="reads it once more for the answer's end, knowing likely starts")

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> Bidaf:
        encoder = self.encoder.build(embedder.output_size)
        text_encoder = TextEncoder(embedder, encoder, self.dropout, self.num_highway_layers)
        attention = AttentionFlow(text_encoder.output_size)
        modeling_encoder = self.modeling_encoder.build(attention.output_size)
        return Bidaf(
            embedder,
            text_encoder,
            attention,
            modeling_encoder,
            self.end_encoder.build(attention.output_size + 3 * modeling_encoder.output_size),
            dropout=self.dropout,
            max_answer_length=self.max_answer_length,
            window=self.window,
        )


class Bidaf(ReadingModel):
    """Bidirectional attention flow.

    Source: Seo et al. (2017), "Bidirectional Attention Flow for Machine Comprehension", section 2. As in the authors'
    code and in AllenNLP's, the encoder for ends reads the joined texts too, and the passage as a likely start sees it.
    Departs from them in that dropout is variational. ELMo's second mix is concatenated to the first encoder's output,
    as in `BidafSelfAttention`.

    Arguments:
        embedder: what passage and question are read with.
        text_encoder: encodes both.
        attention: joins passage and question; puts out G features.
        modeling_encoder: of inputs of G features; puts out H.
        end_encoder: of inputs of G + 3H features.
        dropout: probability of variational dropout on the encoders' outputs and before the scores.
        max_answer_length: most tokens of a predicted answer; the paper has no limit.
        window: see `ReadingConfig.window`.
    """

    def __init__(
        self,
        embedder: Embedder,
        text_encoder: TextEncoder,
        attention: AttentionFlow,
        modeling_encoder: Encoder,
        end_encoder: Encoder,
        *,
        dropout: float,
        max_answer_length: int,
        window: int,
    ) -> None:
        super().__init__(embedder, max_answer_length, window)
        self.text_encoder = text_encoder
        self.attention = attention
        self.modeling_encoder = modeling_encoder
        self.end_encoder = end_encoder
        self.dropout = VariationalDropout(dropout)
        self.start = _scores(attention.output_size + modeling_encoder.output_size)
        self.end = _scores(attention.output_size + end_encoder.output_size)

    def forward(self, batch: ReadingBatch) -> ReadingOutput:
        passage = self.text_encoder(self.embedder, batch.passage)  # (B, T, D)
        question = self.text_encoder(self.embedder, batch.question)  # (B, Q, D)
        mask = batch.passage.mask
        joined = self.attention(passage, question, mask, batch.question.mask)  # (B, T, G)
        modeled = self.dropout(self.modeling_encoder(joined, mask))  # (B, T, H)
        start_logits = self._score(self.start, joined, modeled)
        likely_start = masked_softmax(start_logits, mask).unsqueeze(1) @ modeled  # (B, 1, H)
        parts = [joined, modeled, likely_start.expand_as(modeled), modeled * likely_start]
        of_end = self.dropout(self.end_encoder(torch.cat(parts, dim=2), mask))
        return ReadingOutput(start_logits=start_logits, end_logits=self._score(self.end, joined, of_end), mask=mask)

    def _score(self, scores: nn.Linear, joined: Tensor, encoded: Tensor) -> Tensor:
        return scores(self.dropout(torch.cat([joined, encoded], dim=2))).squeeze(2)  # (B, T)


def _scores(size: int) -> nn.Linear:
    """From vectors to scores, without a bias, which the softmax over tokens would cancel."""
    linear = nn.Linear(size, 1, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def _initialize(linear: nn.Linear) -> None:
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
