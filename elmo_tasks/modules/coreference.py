"""The parts of a coreference resolver: vectors and scores of spans, the choice of spans, scores of antecedents.

# N tokens, W tokens of the longest span, n tokens of a chunk; M chosen spans of all documents in their order, m spans
# of a chunk, K antecedents of a span; D features of the input, H features of the encoder's output, F features of an
# embedding, G = 2H + D + F features of a span, U units of the first hidden layer, ... any leading axes
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.dropout import Dropout
from elmo_tasks.modules.attention import masked_softmax
from elmo_tasks.modules.feed_forward import FeedForward, make_linear
from elmo_tasks.modules.sentence_groups import TokenVectors
from elmo_tasks.text.tokens import TensorRecord

_CHUNK_TOKENS = 2048  # whose spans are scored at once
_CHUNK_NUMBERS = 1 << 24  # of the largest tensor of a chunk of pairs
_LEAST_DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)  # the least distance of each bucket
_SPEAKERS_UNKNOWN, _SAME_SPEAKER, _OTHER_SPEAKER = range(3)


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
        self.width_embedding = _make_table(max_width, feature_size)
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
        chunks = []
        for first in range(0, len(starts), _CHUNK_TOKENS):
            chunk = slice(first, first + _CHUNK_TOKENS)
            weights = self._head_weights(self._following(features.head_logits.unsqueeze(1), chunk).squeeze(2))
            head = weights.to(heads.dtype) @ self._following(heads, chunk)  # (n, W, U)
            hidden = starts[chunk].unsqueeze(1) + self._following(ends, chunk) + head + widths
            chunks.append(self.mention_scorer.score(hidden))
        is_span = torch.arange(self.max_width, device=tokens_left.device) < tokens_left.unsqueeze(1)  # (N, W)
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

    def _head_weights(self, logits: Tensor) -> Tensor:
        """(n, W) -> (n, W, W): at [t, w] the attention of the span of w + 1 tokens at t to the tokens from t on."""
        within = torch.ones(self.max_width, self.max_width, dtype=torch.bool, device=logits.device).tril()
        return masked_softmax(logits.unsqueeze(1).expand(-1, self.max_width, -1), within)


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


class AntecedentScorer(nn.Module):
    """Scores of each span with the K spans before it.

    Source: Lee et al. (2017), "End-to-end Neural Coreference Resolution", section 4. For a span i and one before it j,
    s(i, j) = s_m(i) + s_m(j) + w · FFNN([g_i; g_j; g_i * g_j; phi(i, j)]), and 0 for none of them. phi are embeddings
    of whether the speakers are the same, of the document's genre, and of the distance in spans, in buckets 1, 2, 3, 4,
    5-7, 8-15, 16-31, 32-63, 64 and more. Departures: unknown speakers are a third case, neither the same nor different;
    dropout on embeddings is drawn once for all pairs of a batch.

    Only what depends on both spans is computed for each pair, and in chunks. Without a gradient, memory never holds all
    pairs.

    Arguments:
        span_size: G.
        num_genres: how many genres there are, the unknown one, 0, included.
        feature_size: F.
        hidden_sizes: units of the hidden layers.
        dropout: probability of dropout on hidden layers and embeddings.
        max_antecedents: the most that K can be.
        as_allennlp: phi is only the embedding of the distance, and the scores of antecedents have a bias.
    """

    def __init__(
        self,
        span_size: int,
        num_genres: int,
        feature_size: int,
        hidden_sizes: tuple[int, ...],
        dropout: float,
        max_antecedents: int,
        as_allennlp: bool = False,
    ) -> None:
        super().__init__()
        self.max_antecedents = max_antecedents
        rows = {"distance": len(_LEAST_DISTANCES)}
        if not as_allennlp:
            rows = {"speaker": 3, "genre": num_genres, **rows}
        spans = dict.fromkeys(("span", "antecedent", "product"), span_size)
        parts = {**spans, **dict.fromkeys(rows, feature_size)}
        self.scorer = PartwiseScorer(parts, hidden_sizes, dropout, bias=as_allennlp)
        self.embeddings = nn.ParameterDict({name: _make_table(size, feature_size) for name, size in rows.items()})
        if "genre" in self.embeddings:
            nn.init.zeros_(self.embeddings["genre"])  # a genre that training never shows must not matter
        self.dropout = Dropout(dropout)

    def forward(
        self, vectors: Tensor, mention_scores: Tensor, documents: Tensor, speakers: Tensor, genres: Tensor
    ) -> Tensor:
        """The scores of all antecedents.

        Arguments:
            vectors: (M, G).
            mention_scores: (M,) float32.
            documents: (M,) int64, ascending; an antecedent is always in the same document.
            speakers: (M,) int64, 0 where unknown.
            genres: (M,) int64, of the spans' documents, 0 where unknown.

        Returns:
            (M, K + 1) float32: at [i, k] for span i - K + k as the antecedent of span i, minus infinity where it cannot
            be one; 0 in the last column, which stands for no antecedent.
        """
        most_spans = int(torch.unique_consecutive(documents, return_counts=True)[1].max())  # of a document
        longest = max(1, min(self.max_antecedents, most_spans - 1))  # K
        project = self.scorer.project
        features = {name: project(name, self.dropout(table)) for name, table in self.embeddings.items()}
        spans = project("span", vectors)  # (M, U)
        if "genre" in features:
            spans = spans + features["genre"][genres]
        antecedents = project("antecedent", vectors)  # (M, U)
        distances = features["distance"][_distance_buckets(longest, vectors.device)]  # (K, U)
        kinds = _speaker_kinds(speakers, longest)  # (M, K)
        size = max(1, _CHUNK_NUMBERS // (longest * vectors.shape[1]))
        chunks = []
        for first in range(0, len(vectors), size):
            chunk = slice(first, first + size)
            products = vectors[chunk].unsqueeze(1) * previous(vectors, longest, chunk)  # (m, K, G)
            hidden = project("product", products)  # (m, K, U)
            if "speaker" in features:
                # A product with rows of a unit matrix picks rows faster than an index does, especially backward.
                is_kind = functional.one_hot(kinds[chunk], len(features["speaker"])).to(products.dtype)  # (m, K, 3)
                hidden = hidden + is_kind @ features["speaker"].to(products.dtype)
            hidden = hidden + previous(antecedents, longest, chunk) + (spans[chunk].unsqueeze(1) + distances)
            chunks.append(self.scorer.score(hidden))
        scores = torch.cat(chunks) + mention_scores.unsqueeze(1) + previous(mention_scores, longest)  # (M, K)
        is_antecedent = previous(documents + 1, longest) == (documents + 1).unsqueeze(1)
        return functional.pad(scores.masked_fill(~is_antecedent, -torch.inf), (0, 1))  # (M, K + 1)


def previous(values: Tensor, count: int, rows: slice = slice(None)) -> Tensor:
    """The `count` values before each of the given rows, the nearest last; zeros stand before the first row.

    (M,) -> (m, count) or (M, G) -> (m, count, G), views of a copy of the values.
    """
    first, end, _ = rows.indices(len(values))
    before = values[max(0, first - count) : end - 1]
    zeros = values.new_zeros(max(0, count - first), *values.shape[1:])
    windows = torch.cat([zeros, before]).unfold(0, count, 1)  # (m, count) or (m, G, count)
    return windows if values.dim() == 1 else windows.transpose(1, 2)


def _speaker_kinds(speakers: Tensor, count: int) -> Tensor:
    """(M, K): whether a span and an antecedent have the same speaker, different ones, or an unknown one."""
    before = previous(speakers, count)
    kinds = torch.where(before == speakers.unsqueeze(1), _SAME_SPEAKER, _OTHER_SPEAKER)
    return kinds.masked_fill((before == 0) | (speakers == 0).unsqueeze(1), _SPEAKERS_UNKNOWN)


def _distance_buckets(count: int, device: torch.device) -> Tensor:
    """(K,): the bucket of each antecedent's distance. The distance of the first column is K."""
    distances = torch.arange(count, 0, -1, device=device)
    return torch.bucketize(distances, torch.tensor(_LEAST_DISTANCES, device=device), right=True) - 1


def _make_table(num_rows: int, size: int) -> nn.Parameter:
    """A table of embeddings with new values, drawn after Glorot."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_rows, size)))
