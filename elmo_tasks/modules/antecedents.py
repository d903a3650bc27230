"""Scores of spans with the spans before them, their possible antecedents.

# M spans of all documents in their order, m spans of a chunk, K possible antecedents of a span; G features of a span, F
# features of an embedding, U units of the first hidden layer
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.modules.feed_forward import make_linear
from elmo_tasks.modules.mentions import CHUNK_NUMBERS, PartwiseScorer, make_table
from elmo_tasks.text.tokens import TensorRecord

_LEAST_DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)  # the least distance of each bucket
_SPEAKERS_UNKNOWN, _SAME_SPEAKER, _OTHER_SPEAKER = range(3)


@dataclasses.dataclass(frozen=True)
class Spans(TensorRecord):
    """Spans of all documents in their order: documents ascend."""

    vectors: Tensor  # (M, G)
    mention_scores: Tensor  # (M,) float32
    documents: Tensor  # (M,) int64
    speakers: Tensor  # (M,) int64, 0 where unknown
    genres: Tensor  # (M,) int64, of the spans' documents, 0 where unknown


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The K possible antecedents of each span, in the order of the text."""

    numbers: Tensor  # (M, K) int64, the numbers of spans; where there are fewer than K, any below 0
    are_nearest: bool  # they are the K spans before each span, so that no index is needed
    coarse_scores: Tensor | None = None  # (M, K) float32, what the coarse choice adds to their scores

    def of(self, values: Tensor, rows: slice = slice(None)) -> Tensor:
        """The candidates' values: (M,) -> (m, K), or (M, G) -> (m, K, G)."""
        if self.are_nearest:
            return previous(values, self.numbers.shape[1], rows)
        return values[self.numbers[rows].clamp(min=0)]


class AntecedentScorer(nn.Module):
    """Scores of each span with K spans before it.

    Source: Lee et al. (2017), "End-to-end Neural Coreference Resolution", section 4. For a span i and one before it j,
    s(i, j) = s_m(i) + s_m(j) + w · FFNN([g_i; g_j; g_i * g_j; phi(i, j)]), and 0 for none of them. phi are embeddings
    of whether the speakers are the same, of the document's genre, and of the distance in spans, in buckets 1, 2, 3, 4,
    5-7, 8-15, 16-31, 32-63, 64 and more. Departures: unknown speakers are a third case, neither the same nor different;
    dropout on embeddings is drawn once for all pairs of a batch.

    Lee et al. (2018), "Higher-order Coreference Resolution with Coarse-to-fine Inference", add two options. With a
    coarse choice (section 4), the candidates are not the K nearest spans, but those with the best
    s_m(i) + s_m(j) + s_c(i, j), and s(i, j) also has s_c(i, j) = g_i · (W g_j + b). With an order above 1 (section 3),
    the vectors of spans are refined and pairs are scored again: a_i is the mean of g_i and its candidates by the
    softmax of their scores, and g_i becomes f * g_i + (1 - f) * a_i, where f is the sigmoid of V [g_i; a_i] + c.

    Only what depends on both spans is computed for each pair, and in chunks. Without a gradient, memory never holds all
    pairs.

    Arguments:
        span_size: G.
        num_genres: how many genres there are, the unknown one, 0, included.
        feature_size: F.
        hidden_sizes: units of the hidden layers.
        dropout: probability of dropout on hidden layers and embeddings.
        max_antecedents: the most that K can be.
        coarse_to_fine: candidates are chosen by coarse scores.
        order: how often pairs are scored.
        as_allennlp: phi is only the embedding of the distance, the scores of antecedents have a bias, and f is one
            number for each span.
    """

    def __init__(
        self,
        span_size: int,
        num_genres: int,
        feature_size: int,
        hidden_sizes: tuple[int, ...],
        dropout: float,
        max_antecedents: int,
        coarse_to_fine: bool = False,
        order: int = 1,
        as_allennlp: bool = False,
    ) -> None:
        super().__init__()
        self.max_antecedents = max_antecedents
        self.order = order
        rows = {"distance": len(_LEAST_DISTANCES)}
        if not as_allennlp:
            rows = {"speaker": 3, "genre": num_genres, **rows}
        spans = dict.fromkeys(("span", "antecedent", "product"), span_size)
        parts = {**spans, **dict.fromkeys(rows, feature_size)}
        self.scorer = PartwiseScorer(parts, hidden_sizes, dropout, bias=as_allennlp)
        self.embeddings = nn.ParameterDict({name: make_table(size, feature_size) for name, size in rows.items()})
        if "genre" in self.embeddings:
            nn.init.zeros_(self.embeddings["genre"])  # a genre that training never shows must not matter
        self.dropout = Dropout(dropout)
        self.coarse = make_linear(span_size, span_size) if coarse_to_fine else None
        self.gate = make_linear(2 * span_size, 1 if as_allennlp else span_size) if order > 1 else None

    def forward(self, spans: Spans, choose: bool = True) -> tuple[Tensor, Tensor]:
        """Chooses candidates and scores them.

        Arguments:
            choose: False makes all spans before a span its candidates where they would be chosen by coarse scores.

        Returns:
            the numbers of the candidates, (M, K) int64, as in `Candidates`; and
            their scores, (M, K + 1) float32, minus infinity where there is none; 0 in the last column, which stands for
            no antecedent.
        """
        features = {name: self.scorer.project(name, self.dropout(table)) for name, table in self.embeddings.items()}
        candidates = self._candidates(spans, choose)
        scores = self._scores(spans, candidates, features)
        for _ in range(self.order - 1):
            spans = dataclasses.replace(spans, vectors=self._refined(spans.vectors, scores, candidates.numbers))
            scores = self._scores(spans, candidates, features)
        return candidates.numbers, scores

    def _candidates(self, spans: Spans, choose: bool) -> Candidates:
        most_spans = int(torch.unique_consecutive(spans.documents, return_counts=True)[1].max())  # of a document
        if self.coarse is not None:
            return self._chosen(spans, min(most_spans, self.max_antecedents) if choose else most_spans)
        count = min(max(1, most_spans - 1), self.max_antecedents)  # K
        rows = torch.arange(len(spans.documents), device=spans.documents.device).unsqueeze(1)
        numbers = rows - torch.arange(count, 0, -1, device=rows.device)  # (M, K)
        is_candidate = previous(spans.documents + 1, count) == (spans.documents + 1).unsqueeze(1)
        return Candidates(numbers.masked_fill(~is_candidate, -1), are_nearest=True)

    def _chosen(self, spans: Spans, count: int) -> Candidates:
        """The `count` candidates with the best coarse scores."""
        assert self.coarse is not None
        keys = self.coarse(spans.vectors)  # (M, G), W g + b
        numbers, scores = [], []
        first = 0
        for size in torch.unique_consecutive(spans.documents, return_counts=True)[1].tolist():
            document = slice(first, first + size)
            of_document = spans.vectors[document], keys[document], spans.mention_scores[document]
            found, coarse = _best_before(*of_document, min(count, size))
            missing = (count - found.shape[1], 0)  # columns of shorter documents
            numbers.append(functional.pad(found + torch.where(found < 0, -first, first), missing, value=-1 - len(keys)))
            scores.append(functional.pad(coarse, missing))
            first += size
        return Candidates(torch.cat(numbers), are_nearest=False, coarse_scores=torch.cat(scores))

    def _scores(self, spans: Spans, candidates: Candidates, features: dict[str, Tensor]) -> Tensor:
        """(M, K + 1) float32.

        Arguments:
            features: what the rows of each table of embeddings contribute to the first layer, (rows, U).
        """
        vectors, numbers, project = spans.vectors, candidates.numbers, self.scorer.project
        own = project("span", vectors)  # (M, U)
        if "genre" in features:
            own = own + features["genre"][spans.genres]
        others = project("antecedent", vectors)  # (M, U)
        buckets = _distance_buckets(numbers, candidates.are_nearest)  # (K,) or (M, K)
        distances = features["distance"][buckets] if candidates.are_nearest else None  # (K, U)
        size = max(1, CHUNK_NUMBERS // (numbers.shape[1] * vectors.shape[1]))
        chunks = []
        for first in range(0, len(vectors), size):
            chunk = slice(first, first + size)
            products = vectors[chunk].unsqueeze(1) * candidates.of(vectors, chunk)  # (m, K, G)
            hidden = project("product", products)  # (m, K, U)
            if "speaker" in features:
                # A product with rows of a unit matrix picks rows faster than an index does, especially backward.
                kinds = _speaker_kinds(spans.speakers[chunk], candidates.of(spans.speakers, chunk))  # (m, K)
                is_kind = functional.one_hot(kinds, len(features["speaker"])).to(products.dtype)  # (m, K, 3)
                hidden = hidden + is_kind @ features["speaker"].to(products.dtype)
            apart = features["distance"][buckets[chunk]] if distances is None else distances  # (m, K, U) or (K, U)
            hidden = hidden + candidates.of(others, chunk) + (own[chunk].unsqueeze(1) + apart)
            chunks.append(self.scorer.score(hidden))
        scores = torch.cat(chunks) + spans.mention_scores.unsqueeze(1) + candidates.of(spans.mention_scores)  # (M, K)
        if candidates.coarse_scores is not None:
            scores = scores + candidates.coarse_scores
        return functional.pad(scores.masked_fill(numbers < 0, -torch.inf), (0, 1))  # (M, K + 1)

    def _refined(self, vectors: Tensor, scores: Tensor, numbers: Tensor) -> Tensor:
        """The vectors, each mixed with those of its candidates: (M, G)."""
        assert self.gate is not None
        own = torch.arange(len(vectors), device=vectors.device).unsqueeze(1)
        rows = torch.cat([numbers.clamp(min=0), own], dim=1)  # (M, K + 1)
        weights = scores.softmax(dim=1)  # 0 where there is no candidate
        mean = functional.embedding_bag(rows, vectors.float(), mode="sum", per_sample_weights=weights)  # (M, G)
        share = torch.sigmoid(self.gate(torch.cat([vectors, mean.to(vectors.dtype)], dim=1)))
        return share * vectors + (1 - share) * mean.to(vectors.dtype)


def previous(values: Tensor, count: int, rows: slice = slice(None)) -> Tensor:
    """The `count` values before each of the given rows, the nearest last; zeros stand before the first row.

    (M,) -> (m, count) or (M, G) -> (m, count, G), views of a copy of the values.
    """
    first, end, _ = rows.indices(len(values))
    before = values[max(0, first - count) : end - 1]
    zeros = values.new_zeros(max(0, count - first), *values.shape[1:])
    windows = torch.cat([zeros, before]).unfold(0, count, 1)  # (m, count) or (m, G, count)
    return windows if values.dim() == 1 else windows.transpose(1, 2)


def _best_before(vectors: Tensor, keys: Tensor, mention_scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The spans before each of a document with the best coarse scores, by chunks of the matrix of all pairs.

    Returns:
        their numbers in the document, (M, count), ascending, -1 - n where the choice had to take a span n that is not
        before; and their coarse scores, (M, count).
    """
    rows = torch.arange(len(keys), device=keys.device)
    numbers, scores = [], []
    for own in rows.split(max(1, CHUNK_NUMBERS // len(rows))):
        coarse = (vectors[own] @ keys.T).float()  # (m, M)
        ranks = (coarse + mention_scores).masked_fill(rows >= own.unsqueeze(1), -torch.inf)
        best, found = ranks.topk(count, dim=1)
        chosen = torch.where(best > -torch.inf, found, -1 - found).sort(dim=1).values  # (m, count)
        numbers.append(chosen)
        scores.append(coarse.gather(1, chosen.clamp(min=0)))
    return torch.cat(numbers), torch.cat(scores)


def _speaker_kinds(speakers: Tensor, before: Tensor) -> Tensor:
    """(m, K): whether a span and an antecedent have the same speaker, different ones, or an unknown one."""
    kinds = torch.where(before == speakers.unsqueeze(1), _SAME_SPEAKER, _OTHER_SPEAKER)
    return kinds.masked_fill((before == 0) | (speakers == 0).unsqueeze(1), _SPEAKERS_UNKNOWN)


def _distance_buckets(numbers: Tensor, are_nearest: bool) -> Tensor:
    """The bucket of each candidate's distance: (K,) for the nearest spans, the first of which is K spans away."""
    if are_nearest:
        distances = torch.arange(numbers.shape[1], 0, -1, device=numbers.device)
    else:
        distances = torch.arange(len(numbers), device=numbers.device).unsqueeze(1) - numbers.clamp(min=0)  # (M, K)
    buckets = torch.bucketize(distances, torch.tensor(_LEAST_DISTANCES, device=numbers.device), right=True) - 1
    return buckets.clamp(min=0)  # the first span has no antecedent
