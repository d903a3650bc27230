"""Spans as mentions: their vectors, their scores, and the choice of the best.

# N tokens, W tokens of the longest span, n tokens of a chunk; M chosen spans of all documents in their order;
# D features of the input, H features of the encoder's output, F features of an embedding, G = 2H + D + F features of a
# span, U units of the first hidden layer, ... any leading axes
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.modules.attention import masked_softmax
from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.modules.feed_forward import FeedForward, make_linear
from elmo_tasks.text.tokens import TensorRecord

CHUNK_NUMBERS = 1 << 24  # of the largest tensor of a chunk of spans, or of pairs of spans
_CHUNK_TOKENS = 2048  # the most tokens whose spans are scored at once
_FEW_WIDTHS = 16  # with more, most spans would leave their sentences, and only the others are scored


@dataclasses.dataclass(frozen=True)
class TokenVectors(TensorRecord):
    """The vectors of tokens, sentence by sentence, without padding."""

    inputs: Tensor  # (N, D), the embedder's
    encoded: Tensor  # (N, H), the encoder's and, where there is one, ELMo's second mix


class PartwiseScorer(nn.Module):
    """w · FFNN([a; b; ...]), a feed-forward scorer of concatenated vectors that never concatenates them.

    The first layer is W [a; b] + c = W_a a + W_b b + c. So a part is multiplied once and then added wherever it is
    needed. The scores of all pairs of N things need N products instead of N x N. A part that is a row of a small table
    needs as many products as the table has rows. Numbers and gradients are those of the concatenation.

    Arguments:
        part_sizes: the parts' names and sizes.
        hidden_sizes: features of each hidden layer; U is the first.
        dropout: probability of dropout on each hidden layer.
        bias: whether a learned number is added to the scores.
    """

    def __init__(
        self, part_sizes: Mapping[str, int], hidden_sizes: tuple[int, ...], dropout: float, bias: bool = False
    ) -> None:
        super().__init__()
        self.part_sizes = dict(part_sizes)
        self.first = make_linear(sum(part_sizes.values()), hidden_sizes[0])
        self.rest = FeedForward(hidden_sizes[0], hidden_sizes[1:], dropout=dropout)
        self.output = make_linear(self.rest.output_size, 1, bias=bias)
        self.dropout = Dropout(dropout)

    def project(self, part: str, values: Tensor) -> Tensor:
        """What a part contributes to the first layer: (..., size) -> (..., U). The first part includes the bias."""
        position = list(self.part_sizes).index(part)
        weights = self.first.weight.split(list(self.part_sizes.values()), dim=1)
        return functional.linear(values, weights[position], self.first.bias if position == 0 else None)

    def score(self, projected: Tensor) -> Tensor:
        """The scores, in single precision, of the sum of all parts' contributions: (..., U) -> (...)."""
        return self.output(self.rest(self.dropout(torch.relu(projected)))).squeeze(-1).float()


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
    every length has an embedding, not every bucket of lengths; dropout on these embeddings is drawn once for all spans
    of a batch.

    All spans need scores, but only a few need vectors. Since the first layer is linear, the scores are computed from
    products of tokens, W times fewer than spans, and are exactly those of the vectors.

    Arguments:
        input_size: D.
        encoded_size: H.
        max_width: W.
        feature_size: F.
        hidden_sizes: units of the hidden layers of both scorers.
        dropout: probability of dropout on hidden layers and embeddings.
        as_allennlp: the score of a token as a head is a linear function of its inputs, and mention scores have a bias.
    """

    def __init__(
        self,
        input_size: int,
        encoded_size: int,
        max_width: int,
        feature_size: int,
        hidden_sizes: tuple[int, ...],
        dropout: float,
        as_allennlp: bool = False,
    ) -> None:
        super().__init__()
        self.max_width = max_width
        self.attention: PartwiseScorer | nn.Linear
        if as_allennlp:
            self.attention = make_linear(input_size, 1, bias=False)
        else:
            self.attention = PartwiseScorer({"token": encoded_size}, hidden_sizes, dropout)
        parts = {"start": encoded_size, "end": encoded_size, "head": input_size, "width": feature_size}
        self.mention_scorer = PartwiseScorer(parts, hidden_sizes, dropout, bias=as_allennlp)
        self.width_embedding = make_table(max_width, feature_size)
        self.dropout = Dropout(dropout)
        self.output_size = sum(parts.values())

    def features(self, tokens: TokenVectors) -> SpanFeatures:
        """Computes what all spans share."""
        if isinstance(self.attention, nn.Linear):
            head_logits = self.attention(tokens.inputs).squeeze(1).float()
        else:
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
        is_span = torch.arange(self.max_width, device=tokens_left.device) < tokens_left.unsqueeze(1)  # (N, W)
        within = is_span.new_ones(self.max_width, self.max_width).tril()
        size = max(1, min(_CHUNK_TOKENS, CHUNK_NUMBERS // (self.max_width * starts.shape[1])))
        chunks = []
        for first in range(0, len(starts), size):
            chunk = slice(first, first + size)
            logits = self._following(features.head_logits.unsqueeze(1), chunk).squeeze(2)  # (n, W)
            # (n, W, W): at [t, w] the attention of the span of w + 1 tokens at t to the tokens from t on.
            weights = masked_softmax(logits.unsqueeze(1).expand(-1, self.max_width, -1), within)
            head = weights.to(heads.dtype) @ self._following(heads, chunk)  # (n, W, U)
            hidden = starts[chunk].unsqueeze(1) + self._following(ends, chunk) + head + widths
            if self.max_width > _FEW_WIDTHS:
                scores = self.mention_scorer.score(hidden[is_span[chunk]])
                chunks.append(scores.new_zeros(is_span[chunk].shape).masked_scatter(is_span[chunk], scores))
            else:
                chunks.append(self.mention_scorer.score(hidden))
        return torch.cat(chunks).masked_fill(~is_span, -torch.inf)

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
        first, last = encoded.index_select(0, starts), encoded.index_select(0, ends)
        return torch.cat([first, last, heads.to(encoded.dtype), features.widths[ends - starts]], dim=1)

    def _following(self, values: Tensor, rows: slice) -> Tensor:
        """(N, U) -> (n, W, U): the values of the W tokens from each of some tokens on, zero behind the last token."""
        first, end, _ = rows.indices(len(values))
        here = values[first : end + self.max_width - 1]
        padded = functional.pad(here, (0, 0, 0, end - first + self.max_width - 1 - len(here)))
        return padded.unfold(0, self.max_width, 1).transpose(1, 2)


def best_non_crossing_spans(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The best spans of which no two cross, that is, overlap without one being inside the other.

    Source: Lee et al. (2017), section 5: the spans are visited from the best score to the worst, and a span is kept
    unless it crosses one that was kept before, until there are enough. Of spans with equal scores, the one that starts
    first comes first, then the shorter one. Except for the sorting, time grows with N x W.

    Arguments:
        scores: (N, W), at [t, w] that of the span of w + 1 tokens that starts at token t; minus infinity where there is
            no such span.
        count: most spans that are kept, at least 1.

    Returns:
        the numbers t * W + w of the spans that are kept, in ascending order: by first, then by last token.
    """
    num_tokens, longest = scores.shape
    furthest_end = [-1] * num_tokens  # of the kept spans that start at a token
    earliest_start = [num_tokens] * num_tokens  # of the kept spans that end at a token
    kept: list[int] = []
    for number in _from_best_to_worst(scores).tolist():
        start, width = divmod(number, longest)
        end = start + width
        # A span of one token crosses none. Most of the spans that are kept have one.
        if width and (max(furthest_end[start + 1 : end + 1]) > end or min(earliest_start[start:end]) < start):
            continue
        furthest_end[start] = max(furthest_end[start], end)
        earliest_start[end] = min(earliest_start[end], start)
        kept.append(number)
        if len(kept) == count:
            break
    return np.sort(np.array(kept, dtype=np.int64))


def best_crossing_spans(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """As `best_non_crossing_spans`, but the spans may cross."""
    return np.sort(_from_best_to_worst(scores)[:count])


def _from_best_to_worst(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """The numbers t * W + w of the spans that there are, given their scores (N, W)."""
    flat = scores.ravel()
    return np.argsort(-flat, kind="stable")[: np.count_nonzero(flat != -np.inf)]


def make_table(num_rows: int, size: int) -> nn.Parameter:
    """A table of embeddings with new values, drawn after Glorot."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_rows, size)))
