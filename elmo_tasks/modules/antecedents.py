"""Scores for each span with the spans before it: whether the two mean the same.

# M spans of all documents in their order, m spans of a chunk, K antecedents of a span, G features of a span,
# F features of an embedding, U units of a hidden layer
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.dropout import Dropout
from elmo_tasks.modules.partwise import PartwiseScorer
from elmo_tasks.modules.span_representation import make_table

_CHUNK_NUMBERS = 1 << 24  # of the largest tensor of a chunk of pairs
_LEAST_DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)  # the least distance of each bucket
_SPEAKERS_UNKNOWN, _SAME_SPEAKER, _OTHER_SPEAKER = range(3)
_PAIR_FEATURES = ("speaker", "genre", "distance")


class AntecedentScorer(nn.Module):
    """Scores of each span with the K spans before it.

    Source: Lee et al. (2017), "End-to-end Neural Coreference Resolution", section 4. For a span i and one before it j,
    s(i, j) = s_m(i) + s_m(j) + w · FFNN([g_i; g_j; g_i * g_j; phi(i, j)]), and 0 for none of them. phi are embeddings
    of whether the speakers are the same, of the document's genre, and of the distance in spans, in buckets 1, 2, 3, 4,
    5-7, 8-15, 16-31, 32-63, 64 and more. Departures: unknown speakers are a third case, neither the same nor different;
    dropout on embeddings is drawn once for all pairs of a batch.

    Only what depends on both spans is computed for each pair, and in chunks, so that memory never holds all pairs.

    Arguments:
        span_size: G.
        num_genres: how many genres there are, the unknown one, 0, included.
        feature_size: F.
        hidden_sizes: units of the hidden layers.
        dropout: probability of dropout on hidden layers and embeddings.
        max_antecedents: the most that K can be.
    """

    def __init__(
        self,
        span_size: int,
        num_genres: int,
        feature_size: int,
        hidden_sizes: tuple[int, ...],
        dropout: float,
        max_antecedents: int,
    ) -> None:
        super().__init__()
        self.max_antecedents = max_antecedents
        spans = dict.fromkeys(("span", "antecedent", "product"), span_size)
        self.scorer = PartwiseScorer({**spans, **dict.fromkeys(_PAIR_FEATURES, feature_size)}, hidden_sizes, dropout)
        rows = {"speaker": 3, "genre": num_genres, "distance": len(_LEAST_DISTANCES)}
        self.embeddings = nn.ParameterDict({name: make_table(rows[name], feature_size) for name in _PAIR_FEATURES})
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
        longest = self._num_antecedents(documents)  # K
        project = self.scorer.project
        features = {name: project(name, self.dropout(table)) for name, table in self.embeddings.items()}
        spans = project("span", vectors) + features["genre"][genres]  # (M, U)
        antecedents = project("antecedent", vectors)  # (M, U)
        distances = features["distance"][_distance_buckets(longest, vectors.device)]  # (K, U)
        kinds = _speaker_kinds(speakers, longest)  # (M, K)
        size = max(1, _CHUNK_NUMBERS // (longest * vectors.shape[1]))
        chunks = []
        for first in range(0, len(vectors), size):
            chunk = slice(first, first + size)
            products = vectors[chunk].unsqueeze(1) * previous(vectors, longest, chunk)  # (m, K, G)
            # A product with rows of a unit matrix picks rows faster than an index does, especially backward.
            is_kind = functional.one_hot(kinds[chunk], len(features["speaker"])).to(products.dtype)  # (m, K, 3)
            hidden = project("product", products) + is_kind @ features["speaker"].to(products.dtype)  # (m, K, U)
            hidden = hidden + previous(antecedents, longest, chunk) + (spans[chunk].unsqueeze(1) + distances)
            chunks.append(self.scorer.score(hidden))
        scores = torch.cat(chunks) + mention_scores.unsqueeze(1) + previous(mention_scores, longest)  # (M, K)
        is_antecedent = previous(documents + 1, longest) == (documents + 1).unsqueeze(1)
        return functional.pad(scores.masked_fill(~is_antecedent, float("-inf")), (0, 1))  # (M, K + 1)

    def _num_antecedents(self, documents: Tensor) -> int:
        """K, the most antecedents that a span of these documents can have; at least 1."""
        most_spans = int(torch.unique_consecutive(documents, return_counts=True)[1].max())
        return max(1, min(self.max_antecedents, most_spans - 1))


def previous(values: Tensor, count: int, rows: slice = slice(None)) -> Tensor:
    """The `count` values before each of the given rows, the nearest last; zero before the first row.

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
