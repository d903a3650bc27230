"""Spans of tokens as vectors, and as scores of being a mention.

# N tokens, W tokens of the longest span, M chosen spans, D features of the input, H features of the encoder's output,
# F features of an embedding, U units of a hidden layer, G = 2H + D + F features of a span, n tokens of a chunk
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.dropout import Dropout
from elmo_tasks.modules.attention import masked_softmax
from elmo_tasks.modules.partwise import PartwiseScorer
from elmo_tasks.modules.sentence_groups import TokenVectors
from elmo_tasks.text.tokens import TensorRecord

_CHUNK_TOKENS = 2048  # whose spans are scored at once


@dataclasses.dataclass(frozen=True)
class SpanFeatures(TensorRecord):
    """What the vectors and scores of spans are computed from."""

    tokens: TokenVectors  # (N, D) and (N, H)
    head_logits: Tensor  # (N,) float32, the score of a token as the head of a span
    widths: Tensor  # (W, F), the embeddings of the spans' lengths


class SpanRepresentation(nn.Module):
    """Vectors of spans, with attention to find their heads, and scores of spans as mentions.

    Source: Lee et al. (2017), "End-to-end Neural Coreference Resolution", section 4. The vector of a span is
    g = [x*_start; x*_end; x^; phi]: the encoder's output at its first and last token, its head as the inputs of its
    tokens weighted by attention, and an embedding of its length. Its score as a mention is w · FFNN(g). Departures:
    every length has an embedding of its own, not every bucket of lengths; dropout on these embeddings is drawn once for
    all spans of a batch.

    All spans need scores, but only a few need vectors. Since the first layer is linear, the scores are computed from
    products of tokens, W times fewer than spans, and are exactly those of the vectors.

    Arguments:
        input_size: D.
        encoded_size: H.
        max_width: W.
        feature_size: F.
        hidden_sizes: units of the hidden layers of both scorers.
        dropout: probability of dropout on hidden layers and embeddings.
    """

    def __init__(
        self,
        input_size: int,
        encoded_size: int,
        max_width: int,
        feature_size: int,
        hidden_sizes: tuple[int, ...],
        dropout: float,
    ) -> None:
        super().__init__()
        self.max_width = max_width
        self.attention = PartwiseScorer({"token": encoded_size}, hidden_sizes, dropout)
        parts = {"start": encoded_size, "end": encoded_size, "head": input_size, "width": feature_size}
        self.mention_scorer = PartwiseScorer(parts, hidden_sizes, dropout)
        self.width_embedding = make_table(max_width, feature_size)
        self.dropout = Dropout(dropout)
        self.output_size = sum(parts.values())

    def features(self, tokens: TokenVectors) -> SpanFeatures:
        """Computes what all spans share."""
        head_logits = self.attention.score(self.attention.project("token", tokens.encoded))
        return SpanFeatures(tokens=tokens, head_logits=head_logits, widths=self.dropout(self.width_embedding))

    def mention_scores(self, features: SpanFeatures, tokens_left: Tensor) -> Tensor:
        """The scores of all spans, in chunks.

        Arguments:
            tokens_left: (N,) int64, how many tokens the sentence has from each token on, including it.

        Returns:
            (N, W) float32, at [t, w] for the span of w + 1 tokens that starts at token t; minus infinity where it would
            leave its sentence.
        """
        project, encoded = self.mention_scorer.project, features.tokens.encoded
        starts, ends = project("start", encoded), project("end", encoded)  # (N, U), (N, U)
        heads = project("head", features.tokens.inputs)  # (N, U)
        widths = project("width", features.widths)  # (W, U)
        chunks = []
        for first in range(0, len(starts), _CHUNK_TOKENS):
            chunk = slice(first, first + _CHUNK_TOKENS)
            weights = self._head_weights(self._following(features.head_logits.unsqueeze(1), chunk).squeeze(2))
            head = weights.to(heads.dtype) @ self._following(heads, chunk)  # (n, W, U)
            hidden = starts[chunk].unsqueeze(1) + self._following(ends, chunk) + head + widths
            chunks.append(self.mention_scorer.score(hidden))
        is_span = torch.arange(self.max_width, device=tokens_left.device) < tokens_left.unsqueeze(1)  # (N, W)
        return torch.cat(chunks).masked_fill(~is_span, float("-inf"))

    def vectors(self, features: SpanFeatures, starts: Tensor, ends: Tensor) -> Tensor:
        """The vectors of chosen spans.

        Arguments:
            starts: (M,) int64, first tokens.
            ends: (M,) int64, last tokens.

        Returns:
            (M, G).
        """
        offsets = torch.arange(self.max_width, device=starts.device)  # (W,)
        is_token = offsets <= (ends - starts).unsqueeze(1)  # (M, W)
        rows = torch.where(is_token, starts.unsqueeze(1) + offsets, starts.unsqueeze(1))  # (M, W)
        weights = masked_softmax(features.head_logits[rows], is_token)
        inputs = features.tokens.inputs.float()  # the weights' type
        heads = functional.embedding_bag(rows, inputs, mode="sum", per_sample_weights=weights)  # (M, D)
        encoded = features.tokens.encoded
        parts = [encoded.index_select(0, starts), encoded.index_select(0, ends), heads, features.widths[ends - starts]]
        return torch.cat(parts, dim=1)

    def _following(self, values: Tensor, rows: slice) -> Tensor:
        """(N, U) -> (n, W, U): the values of the W tokens from each of some tokens on, zero behind the last token."""
        first, end, _ = rows.indices(len(values))
        here = values[first : end + self.max_width - 1]
        padded = functional.pad(here, (0, 0, 0, end - first + self.max_width - 1 - len(here)))
        return padded.unfold(0, self.max_width, 1).transpose(1, 2)

    def _head_weights(self, logits: Tensor) -> Tensor:
        """(n, W) -> (n, W, W): at [t, w] the attention of the span of w + 1 tokens at t to the tokens from t on."""
        within = torch.ones(self.max_width, self.max_width, dtype=torch.bool, device=logits.device).tril()
        return masked_softmax(logits.unsqueeze(1).expand(-1, self.max_width, -1), within)


def make_table(num_rows: int, size: int) -> nn.Parameter:
    """A table of embeddings with new values, drawn after Glorot."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_rows, size)))
