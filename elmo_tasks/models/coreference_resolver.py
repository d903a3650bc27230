"""Coreference resolution: which spans of a document are mentions, and which of them mean the same.

# B documents, N tokens that are read, W tokens of the longest span, M spans that are kept, K antecedents of a span,
# G gold mentions
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor

from elmo_tasks.models.model import ModelConfig, Probability, TaskModel
from elmo_tasks.modules.coreference import AntecedentScorer, SpanRepresentation, best_non_crossing_spans, previous
from elmo_tasks.modules.embedder import Embedder
from elmo_tasks.modules.encoders import Encoder, EncoderConfig
from elmo_tasks.modules.sentence_groups import GroupedSentenceEncoder
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.coreference import GENRES, UNKNOWN_GENRE, Coreference, CoreferenceBatch
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary


class CoreferenceResolverConfig(ModelConfig):
    """A coreference resolver: embedder, encoder, scores of spans and of pairs of spans."""

    type: Literal["coref"] = "coref"
    task: ClassVar[Task] = Coreference()
    encoder: EncoderConfig
    lexical_dropout: Probability = Field(0.5, description="dropout on the encoder's input")
    dropout: Probability = Field(
        0.2,
        description="dropout on hidden layers and features' embeddings; variational, on the encoder's output",
    )
    hidden_sizes: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = Field(
        (150, 150), description="units of the hidden layers of each of the three scorers"
    )
    feature_size: PositiveInt = Field(
        20, description="features of the embeddings of width, distance, speaker and genre"
    )
    max_span_width: PositiveInt = Field(10, description="most tokens of a span")
    spans_per_word: Annotated[float, Field(gt=0)] = Field(
        0.4, description="how many spans are kept as possible mentions, for each token of the document"
    )
    max_antecedents: PositiveInt = Field(
        100, description="how many of the kept spans before a span are its possible antecedents, the nearest ones"
    )
    max_training_sentences: PositiveInt | None = Field(
        50,
        description="in training, of a longer document a random run of so many sentences is read each time; null: all",
    )
    unknown_genre_probability: Probability = Field(
        0.0, description="in training, the probability of a document's genre to be taken for unknown"
    )

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> CoreferenceResolver:
        encoder = self.encoder.build(embedder.output_size)
        return CoreferenceResolver(embedder, encoder, len(vocabulary.labels[GENRES]) + 1, self)


@dataclasses.dataclass(frozen=True)
class CoreferenceOutput(TensorRecord):
    """The spans that were kept, ordered by document, first and last token, and their scores with those before them."""

    starts: Tensor  # (M,) int64, first tokens, as places in the batch
    ends: Tensor  # (M,) int64, last tokens, as places in the batch
    documents: Tensor  # (M,) int64
    antecedent_scores: Tensor  # (M, K + 1) float32, at [i, k] span i - K + k for span i; 0 for none in the last column


@dataclasses.dataclass(frozen=True)
class _Reading:
    """Which sentences of a batch are read, and where their tokens are. Arrays, not tensors: it is a plan."""

    starts: NDArray[np.int64]  # (S,), the places where the sentences begin
    lengths: NDArray[np.int64]  # (S,), their tokens
    documents: NDArray[np.int64]  # (S,), their documents

    def places(self) -> NDArray[np.int64]:
        """(N,), the places of all tokens."""
        new_starts = np.cumsum(self.lengths) - self.lengths
        return np.arange(self.lengths.sum()) + np.repeat(self.starts - new_starts, self.lengths)

    def tokens_left(self) -> NDArray[np.int64]:
        """(N,), how many tokens the sentence has from each token on, itself included."""
        return np.repeat(np.cumsum(self.lengths), self.lengths) - np.arange(self.lengths.sum())

    def borders(self) -> list[int]:
        """(B + 1,), where each document's tokens begin among the N, and where the last one's end."""
        sizes = np.bincount(self.documents, weights=self.lengths).astype(np.int64)
        return [0, *np.cumsum(sizes).tolist()]


class CoreferenceResolver(TaskModel[CoreferenceBatch, CoreferenceOutput]):
    """Finds mentions and links each to an antecedent, both learned together.

    Source: Lee et al. (2017), "End-to-end Neural Coreference Resolution". Spans of up to W tokens within a sentence are
    scored as mentions; the best that do not cross are kept, each of them has the K kept ones before it as candidates
    for its antecedent, and the loss is the likelihood of all gold antecedents among them. Sentences are encoded one by
    one. Peters et al. (2018) add ELMo to the input; a second mix is concatenated to the encoder's output. Departs from
    Lee et al. in that the recurrent state has no dropout, and where `SpanRepresentation` and `AntecedentScorer` say so.

    A document of any length can be predicted: time and memory grow in proportion to its tokens. In training a long
    document is read through a window, whose place torch's generator draws anew each time.

    Arguments:
        embedder: what the tokens are read with.
        encoder: of inputs of the embedder's size.
        num_genres: how many genres there are, the unknown one included.
        config: everything else.
    """

    task = Coreference()

    def __init__(
        self, embedder: Embedder, encoder: Encoder, num_genres: int, config: CoreferenceResolverConfig
    ) -> None:
        super().__init__(embedder)
        self.spans_per_word = config.spans_per_word
        self.max_training_sentences = config.max_training_sentences
        self.unknown_genre_probability = config.unknown_genre_probability
        self.encoder = GroupedSentenceEncoder(embedder, encoder, config.lexical_dropout, config.dropout)
        self.spans = SpanRepresentation(
            embedder.output_size,
            self.encoder.output_size,
            config.max_span_width,
            config.feature_size,
            config.hidden_sizes,
            config.dropout,
        )
        self.antecedents = AntecedentScorer(
            self.spans.output_size,
            num_genres,
            config.feature_size,
            config.hidden_sizes,
            config.dropout,
            config.max_antecedents,
        )

    def forward(self, batch: CoreferenceBatch) -> CoreferenceOutput:
        reading, device = self._reading(batch), batch.speakers.device
        tokens = self.encoder(self.embedder, batch.tokens, reading.starts, reading.lengths)
        features = self.spans.features(tokens)
        mention_scores = self.spans.mention_scores(
            features, torch.from_numpy(reading.tokens_left()).to(device)
        )  # (N, W)
        numbers, documents = (part.to(device) for part in self._keep(mention_scores, reading.borders()))  # (M,), (M,)
        first_tokens = numbers // self.spans.max_width  # (M,)
        last_tokens = first_tokens + numbers % self.spans.max_width
        places = torch.from_numpy(reading.places()).to(device)  # (N,)
        starts = places[first_tokens]
        scores = self.antecedents(
            self.spans.vectors(features, first_tokens, last_tokens),
            mention_scores.flatten().index_select(0, numbers),
            documents,
            batch.speakers[starts],
            self._genres(batch)[documents],
        )
        return CoreferenceOutput(starts=starts, ends=places[last_tokens], documents=documents, antecedent_scores=scores)

    def _reading(self, batch: CoreferenceBatch) -> _Reading:
        """All sentences, or in training a window of each document."""
        documents = batch.sentence_lengths()
        lengths = np.array(list(itertools.chain(*documents)), dtype=np.int64)  # (S,)
        starts = np.cumsum(lengths) - lengths
        counts = np.array(list(map(len, documents)), dtype=np.int64)  # (B,), sentences
        numbers = np.repeat(np.arange(len(counts)), counts)  # (S,), documents
        if not self.training or self.max_training_sentences is None:
            return _Reading(starts, lengths, numbers)
        spare = np.maximum(counts - self.max_training_sentences, 0)
        skipped = (torch.rand(len(counts)).numpy() * (spare + 1)).astype(np.int64)  # (B,), in front of the window
        positions = np.arange(len(lengths)) - np.repeat(np.cumsum(counts) - counts + skipped, counts)  # (S,)
        chosen = (positions >= 0) & (positions < self.max_training_sentences)
        return _Reading(starts[chosen], lengths[chosen], numbers[chosen])

    def _keep(self, mention_scores: Tensor, borders: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The numbers t * W + w of the spans that are kept, and their documents: (M,) and (M,)."""
        scores = mention_scores.detach().cpu().numpy()
        numbers, documents = [], []
        for document, (first, end) in enumerate(itertools.pairwise(borders)):
            count = max(1, int(self.spans_per_word * (end - first)))
            kept = best_non_crossing_spans(scores[first:end], count)
            numbers.append(kept + first * scores.shape[1])
            documents.append(np.full_like(kept, document))
        return torch.from_numpy(np.concatenate(numbers)), torch.from_numpy(np.concatenate(documents))

    def _genres(self, batch: CoreferenceBatch) -> Tensor:
        """(B,), in training some of them hidden, so that it is learned what to do without."""
        if not self.training or self.unknown_genre_probability == 0:
            return batch.genres
        is_hidden = torch.rand(len(batch)) < self.unknown_genre_probability
        return batch.genres.masked_fill(is_hidden.to(batch.genres.device), UNKNOWN_GENRE)

    def loss(self, output: CoreferenceOutput, batch: CoreferenceBatch) -> Tensor:
        """The negative log-likelihood of gold antecedents, summed over a document's spans; the mean over the documents.

        Of a span's gold antecedents any may be chosen, as Lee et al. have it; where there is none among its candidates,
        none is to be chosen.
        """
        if batch.mentions is None:
            raise ValueError("the batch has no gold clusters")
        clusters = _gold_clusters(output, batch.mentions, len(batch.speakers))  # (M,)
        scores = output.antecedent_scores
        is_gold = previous(clusters, scores.shape[1] - 1) == clusters.unsqueeze(1)  # (M, K)
        is_gold = is_gold & (clusters > 0).unsqueeze(1)
        is_gold = torch.cat([is_gold, ~is_gold.any(dim=1, keepdim=True)], dim=1)  # (M, K + 1)
        gold = scores.masked_fill(~is_gold, float("-inf")).logsumexp(dim=1)
        return (scores.logsumexp(dim=1) - gold).sum() / len(batch)

    def decode(
        self, output: CoreferenceOutput, batch: CoreferenceBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The clusters of each document: `{"clusters": [[[first token, last token], ...], ...], ...}`.

        Each span is linked to its best antecedent, and clusters are what these links join. Tokens are numbered in the
        document, ends inclusive; mentions are in the order of the text, and clusters in that of their first mentions.

        With `probabilities` there are beside them the `mentions` of all clusters in the order of the text, for each of
        them its `antecedents`, a number in that list, or None, and the `probabilities` of these choices.
        """
        columns = output.antecedent_scores.shape[1] - 1  # K
        chances, choices = (values.tolist() for values in output.antecedent_scores.softmax(dim=1).max(dim=1))
        antecedents = [span - columns + choice if choice < columns else None for span, choice in enumerate(choices)]
        first_places = list(itertools.accumulate((_num_tokens(example) for example in batch.examples), initial=0))
        documents = output.documents.tolist()
        shifts = [first_places[document] for document in documents]
        spans = [
            [start - shift, end - shift]
            for start, end, shift in zip(output.starts.tolist(), output.ends.tolist(), shifts, strict=True)
        ]
        clusters: list[list[list[int]]] = [[] for _ in batch.examples]
        for cluster in linked_clusters(antecedents):
            clusters[documents[cluster[0]]].append(cluster)
        predictions: list[dict[str, Any]] = []
        for found in clusters:
            prediction = {"clusters": [[spans[span] for span in cluster] for cluster in found]}
            if probabilities:
                prediction |= _choices(sorted(itertools.chain(*found)), spans, antecedents, chances)
            predictions.append(prediction)
        return predictions


def linked_clusters(antecedents: Sequence[int | None]) -> list[list[int]]:
    """What the links from each span to one before it join: clusters of at least two spans, by their first spans."""
    members: dict[int, list[int]] = {}  # by first span
    first_span: list[int] = []  # of each span's cluster
    for span, antecedent in enumerate(antecedents):
        if antecedent is None:
            first_span.append(span)
            continue
        first_span.append(first_span[antecedent])
        members.setdefault(first_span[span], [first_span[span]]).append(span)
    return [members[first] for first in sorted(members)]


def _choices(
    chosen: Sequence[int], spans: Sequence[list[int]], antecedents: Sequence[int | None], chances: Sequence[float]
) -> dict[str, list[Any]]:
    """The mentions of one document, given by their numbers, and what was decided of each."""
    positions = {span: position for position, span in enumerate(chosen)}
    links = [antecedents[span] for span in chosen]
    return {
        "mentions": [spans[span] for span in chosen],
        "antecedents": [None if link is None else positions[link] for link in links],
        "probabilities": [chances[span] for span in chosen],
    }


def _gold_clusters(output: CoreferenceOutput, mentions: Tensor, num_places: int) -> Tensor:
    """(M,): the gold cluster of each span, 0 where there is none; of several the last."""
    if len(mentions) == 0:
        return torch.zeros_like(output.starts)
    keys, order = torch.sort(mentions[:, 0] * num_places + mentions[:, 1], stable=True)  # (G,)
    wanted = output.starts * num_places + output.ends  # (M,)
    found = (torch.searchsorted(keys, wanted, right=True) - 1).clamp(min=0)
    return mentions[order[found], 2].masked_fill(keys[found] != wanted, 0)


def _num_tokens(example: dict[str, Any]) -> int:
    return sum(map(len, example["sentences"]))
