"""Coreference resolution: which spans of a document are mentions, and which of them mean the same.

# B documents, S sentences and N tokens that are read, W tokens of the longest span, M spans that are kept,
# K antecedents of a span, G gold mentions, T tokens of the longest sentence, D features of the embedder's vectors, H of
# the encoder's
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.model import ModelConfig, Prediction, Probability, TaskModel
from elmo_tasks.modules.antecedents import AntecedentScorer, Spans
from elmo_tasks.modules.dropout import Dropout, VariationalDropout
from elmo_tasks.modules.encoders import Encoder, EncoderConfig
from elmo_tasks.modules.mentions import SpanRepresentation, TokenVectors, best_crossing_spans, best_non_crossing_spans
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.coreference import GENRES, UNKNOWN_GENRE, Coreference, CoreferenceBatch
from elmo_tasks.tasks.task import Example
from elmo_tasks.text.genders import is_pronoun, possible_kinds
from elmo_tasks.text.tokens import TensorRecord, Tokens, batches_of_like_lengths
from elmo_tasks.text.vocabulary import Vocabulary

_MIN_SPANS = 6  # the best of 4 to 30 on single sentences of OntoGUM's development data; training texts are longer
_GROUP_TOKENS = 4096  # most tokens of a group, padding included; a longer sentence is a separate group
_LEAST_SHARE = 0.6  # the length of a group's shortest sentence is at least this share of the longest one's


class CoreferenceResolverConfig(ModelConfig):
    """A coreference resolver: embedder, encoder, scores of spans and of pairs of spans."""

    type: Literal["coref"] = "coref"
    task: ClassVar[Task] = Coreference()
    encoder: EncoderConfig
    lexical_dropout: Probability = Field(0.5, description="dropout on the encoder's input")
    dropout: Probability = Field(
        0.2, description="dropout on hidden layers and feature embeddings, and variational on the encoder's output"
    )
    hidden_sizes: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = Field(
        (150, 150), description="units of the hidden layers of each of the three scorers"
    )
    pair_hidden_sizes: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] | None = Field(
        None, description="the same of only the scorer of pairs of spans; null: `hidden_sizes`"
    )
    feature_size: PositiveInt = Field(20, description="size of the embeddings of width, distance, speaker and genre")
    max_span_width: PositiveInt = Field(10, description="the most tokens of a span")
    spans_per_word: PositiveFloat = Field(
        0.4, description="the number of spans that are kept as possible mentions, per token of the document"
    )
    min_spans: PositiveInt | None = Field(
        None, description="at least this many are kept of a short document; null: 6, or 1 with `as_allennlp`"
    )
    max_antecedents: PositiveInt = Field(
        100, description="the number of possible antecedents of a span: the nearest kept spans before it"
    )
    coarse_to_fine: bool = Field(
        False, description="the possible antecedents are those with the best coarse scores, not the nearest"
    )
    inference_order: PositiveInt = Field(
        1, description="how often pairs are scored; each time spans are refined with their likely antecedents before"
    )
    max_training_sentences: PositiveInt | None = Field(
        50,
        description="training reads this many successive sentences, at a random place, of a longer document; null: all",
    )
    unknown_genre_probability: Probability = Field(
        0.0, description="the probability that training treats the genre of a document as unknown"
    )
    consistent_chains: bool = Field(
        False,
        description="a chain never has mentions whose genders or numbers differ, by a list of pronouns, nouns for "
        "persons and first names: a span is linked to the best antecedent in whose chain it can be",
    )
    pronoun_bonus: float = Field(
        0.0, description="is added to the scores of the antecedents of a pronoun when a document is decoded"
    )
    as_allennlp: bool = Field(
        False,
        description="compute as AllenNLP's resolver does: the encoder (and ELMo) reads a document as one long "
        "sentence, the score of a token as a head is a linear function of its inputs, kept spans may cross, distance "
        "is the only feature of a pair, the scores of mentions and of pairs have a bias, and a span is refined by the "
        "same share in all features",
    )

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> CoreferenceResolver:
        return CoreferenceResolver(embedder, self, len(vocabulary.labels[GENRES]) + 1)


@dataclasses.dataclass(frozen=True)
class CoreferenceOutput(TensorRecord):
    """The kept spans, in the order of documents, first and last tokens, and their scores with the spans before them."""

    starts: Tensor  # (M,) int64, first tokens, as positions in the batch
    ends: Tensor  # (M,) int64, last tokens, as positions in the batch
    documents: Tensor  # (M,) int64
    antecedents: Tensor  # (M, K) int64, the numbers of possible antecedents, ascending; negative where there are fewer
    antecedent_scores: Tensor  # (M, K + 1) float32, of these; 0 for none of them in the last column


class CoreferenceResolver(TaskModel[CoreferenceBatch, CoreferenceOutput]):
    """Finds mentions and links each to an antecedent; both are learned together.

    Source: Lee et al. (2017), "End-to-end Neural Coreference Resolution". Spans of up to W tokens within a sentence are
    scored as mentions. The best that do not cross are kept; the K kept spans before a span are the candidates for its
    antecedent, and the loss is the likelihood of all gold antecedents among them. Sentences are encoded one by one.
    Peters et al. (2018) add ELMo to the input; a second mix is concatenated to the encoder's output. `coarse_to_fine`
    and `inference_order` are those of Lee et al. (2018); see `AntecedentScorer`. Departs from Lee
    et al. in that the recurrent state has no dropout, and where `SpanRepresentation` and `AntecedentScorer` say so.
    With `as_allennlp` it computes what AllenNLP's implementation of the paper does.

    Documents may have any length: time and memory grow in proportion to their tokens. In training a long document is
    read through a window, whose position torch's generator chooses anew each time.

    Arguments:
        embedder: reads the tokens.
        config: the settings of the layers.
        num_genres: the number of genres, including the unknown one.
    """

    task = Coreference()

    def __init__(self, embedder: Embedder, config: CoreferenceResolverConfig, num_genres: int) -> None:
        super().__init__(embedder)
        encoder = config.encoder.build(embedder.output_size)
        self.spans_per_word = config.spans_per_word
        self.min_spans = config.min_spans or (1 if config.as_allennlp else _MIN_SPANS)
        self.max_training_sentences = config.max_training_sentences
        self.unknown_genre_probability = config.unknown_genre_probability
        self.consistent_chains = config.consistent_chains
        self.pronoun_bonus = config.pronoun_bonus
        self.as_allennlp = config.as_allennlp
        self.encoder = GroupedSentenceEncoder(embedder, encoder, config.lexical_dropout, config.dropout)
        self.spans = SpanRepresentation(
            embedder.output_size,
            self.encoder.output_size,
            config.max_span_width,
            config.feature_size,
            config.hidden_sizes,
            config.dropout,
            config.as_allennlp,
        )
        self.antecedents = AntecedentScorer(
            self.spans.output_size,
            num_genres,
            config.feature_size,
            config.pair_hidden_sizes or config.hidden_sizes,
            config.dropout,
            config.max_antecedents,
            config.coarse_to_fine,
            config.inference_order,
            config.as_allennlp,
        )

    def embedded_texts(self, example: Example) -> Iterable[Sequence[str]]:
        sentences = super().embedded_texts(example)
        return [list(itertools.chain.from_iterable(sentences))] if self.as_allennlp else sentences

    def forward(self, batch: CoreferenceBatch) -> CoreferenceOutput:
        device = batch.speakers.device
        starts, lengths, sizes = self._sentences(batch)
        ends = np.cumsum(lengths)  # (S,), ends of the sentences among the tokens that are read
        order = np.arange(lengths.sum())  # (N,)
        tokens_left = torch.from_numpy(np.repeat(ends, lengths) - order).to(device)  # (N,), to the sentence's end
        in_batch = order + np.repeat(starts - ends + lengths, lengths)  # (N,)
        positions = torch.from_numpy(in_batch).to(device)  # (N,)
        if self.as_allennlp:  # the encoder reads documents
            lengths = np.array(sizes, dtype=np.int64)  # (B,)
            starts = in_batch[np.cumsum(lengths) - lengths]
        features = self.spans.features(self.encoder(self.embedder, batch.tokens, starts, lengths))
        mention_scores = self.spans.mention_scores(features, tokens_left)  # (N, W)
        if batch.kept is None:
            numbers, documents = (part.to(device) for part in self._keep(mention_scores, sizes))  # (M,), (M,)
        else:
            documents, first, last = batch.kept.unbind(dim=1)
            numbers = first * self.spans.max_width + last - first
        first_tokens = numbers // self.spans.max_width  # (M,)
        last_tokens = first_tokens + numbers % self.spans.max_width
        span_starts = positions[first_tokens]
        spans = Spans(
            vectors=self.spans.vectors(features, first_tokens, last_tokens),
            mention_scores=mention_scores.flatten().index_select(0, numbers),
            documents=documents,
            speakers=batch.speakers[span_starts],
            genres=self._genres(batch)[documents],
        )
        scored = self.antecedents(spans, choose=batch.kept is None)
        return CoreferenceOutput(span_starts, positions[last_tokens], documents, *scored)

    def _sentences(self, batch: CoreferenceBatch) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
        """The starts (S,) in the batch and the lengths (S,) of the sentences to read, and the tokens of each document.

        These are all sentences, or in training a window of each document.
        """
        documents = batch.sentence_lengths()
        lengths = np.array(list(itertools.chain(*documents)), dtype=np.int64)  # (S,)
        starts = np.cumsum(lengths) - lengths
        counts = np.array(list(map(len, documents)), dtype=np.int64)  # (B,), sentences
        if not self.training or self.max_training_sentences is None:
            return starts, lengths, list(map(sum, documents))
        spare = np.maximum(counts - self.max_training_sentences, 0)
        skipped = (torch.rand(len(counts)).numpy() * (spare + 1)).astype(np.int64)  # (B,), before the window
        positions = np.arange(len(lengths)) - np.repeat(np.cumsum(counts) - counts + skipped, counts)  # (S,)
        chosen = (positions >= 0) & (positions < self.max_training_sentences)
        numbers = np.repeat(np.arange(len(counts)), counts)[chosen]  # (S,), documents
        sizes = np.bincount(numbers, weights=lengths[chosen]).astype(np.int64)  # (B,)
        return starts[chosen], lengths[chosen], sizes.tolist()

    def _keep(self, mention_scores: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The numbers t * W + w of the spans that are kept, and their documents: (M,) and (M,)."""
        scores = mention_scores.detach().cpu().numpy()
        choose = best_crossing_spans if self.as_allennlp else best_non_crossing_spans
        numbers, documents = [], []
        for document, (size, end) in enumerate(zip(sizes, itertools.accumulate(sizes), strict=True)):
            first = end - size
            kept = choose(scores[first:end], max(self.min_spans, int(self.spans_per_word * size)))
            numbers.append(kept + first * scores.shape[1])
            documents.append(np.full_like(kept, document))
        return torch.from_numpy(np.concatenate(numbers)), torch.from_numpy(np.concatenate(documents))

    def _genres(self, batch: CoreferenceBatch) -> Tensor:
        """The genres (B,), in training with some of them hidden, so that the head learns to do without."""
        if not self.training or self.unknown_genre_probability == 0:
            return batch.genres
        is_hidden = torch.rand(len(batch)) < self.unknown_genre_probability
        return batch.genres.masked_fill(is_hidden.to(batch.genres.device), UNKNOWN_GENRE)

    def loss(self, output: CoreferenceOutput, batch: CoreferenceBatch) -> Tensor:
        """The negative log-likelihood of gold antecedents, summed over a document's spans; the mean over the documents.

        Any gold antecedent of a span is right, as in Lee et al.; without one among its candidates, none of them is.
        """
        if batch.mentions is None:
            raise ValueError("the batch has no gold clusters")
        clusters = _gold_clusters(output, batch.mentions, len(batch.speakers))  # (M,)
        scores, antecedents = output.antecedent_scores, output.antecedents
        is_gold = (clusters[antecedents.clamp(min=0)] == clusters.unsqueeze(1)) & (antecedents >= 0)  # (M, K)
        is_gold = is_gold & (clusters > 0).unsqueeze(1)
        is_gold = torch.cat([is_gold, ~is_gold.any(dim=1, keepdim=True)], dim=1)  # (M, K + 1)
        gold = scores.masked_fill(~is_gold, float("-inf")).logsumexp(dim=1)
        return (scores.logsumexp(dim=1) - gold).sum() / len(batch)

    def prediction_scores(
        self, output: CoreferenceOutput, batch: CoreferenceBatch, predictions: Sequence[Prediction]
    ) -> Tensor:
        """The log probability of one link in each document: `{"link": (mention, antecedent)}`, with their tokens."""
        offsets = itertools.accumulate(map(sum, batch.sentence_lengths()), initial=0)
        numbers = {span: row for row, span in enumerate(zip(output.starts.tolist(), output.ends.tolist(), strict=True))}
        links = [
            [numbers[offset + first, offset + last] for first, last in prediction["link"]]
            for prediction, offset in zip(predictions, offsets, strict=False)
        ]
        mentions, antecedents = torch.tensor(links, device=output.antecedents.device).unbind(dim=1)
        columns = (output.antecedents[mentions] == antecedents.unsqueeze(1)).int().argmax(dim=1)
        return output.antecedent_scores.log_softmax(dim=1)[mentions, columns]

    def with_choices(self, outputs: Sequence[CoreferenceOutput], batch: CoreferenceBatch) -> CoreferenceBatch:
        """The batch, with the spans that any of the models keeps. Their possible antecedents are not chosen again."""
        kept = [torch.stack([each.documents, each.starts, each.ends], dim=1) for each in outputs]
        return dataclasses.replace(batch, kept=torch.unique(torch.cat(kept), dim=0))

    def _links(self, output: CoreferenceOutput, batch: CoreferenceBatch) -> list[int | None]:
        """The antecedent of each span."""
        scores, tokens = output.antecedent_scores, batch.tokens.texts[0]
        spans = zip(output.starts.tolist(), output.ends.tolist(), strict=True)
        texts = [tokens[first : last + 1] for first, last in spans]
        if self.pronoun_bonus:
            bonus = scores.new_tensor(list(map(is_pronoun, texts))).unsqueeze(1) * self.pronoun_bonus  # (M, 1)
            scores = torch.cat([scores[:, :-1] + bonus, scores[:, -1:]], dim=1)
        if self.consistent_chains:
            kinds = torch.tensor(list(map(possible_kinds, texts)), device=scores.device)  # (M,)
            return consistent_links(output.antecedents, scores, kinds)
        possible = functional.pad(output.antecedents, (0, 1), value=-1)  # (M, K + 1), negative for no antecedent
        choices = scores.softmax(dim=1).clamp(max=1).max(dim=1, keepdim=True).indices  # (M, 1)
        return [None if number < 0 else number for number in possible.gather(1, choices).squeeze(1).tolist()]

    def decode(
        self, output: CoreferenceOutput, batch: CoreferenceBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The clusters of each document: `{"clusters": [[[first token, last token], ...], ...], ...}`.

        Each span is linked to its best antecedent, and the links make the clusters; see also `consistent_chains` and
        `pronoun_bonus`. Tokens are numbered in the document, ends inclusive; mentions are in the order of the text,
        clusters in that of their first mentions.

        With `probabilities` there are also the `mentions` of all clusters in the order of the text, their
        `antecedents`, each a number in that list or None, and the `probabilities` of these choices: that of all
        possible antecedents in the mention's cluster together, or that of None.
        """
        possible = functional.pad(output.antecedents, (0, 1), value=-1)  # (M, K + 1), negative for no antecedent
        antecedents = self._links(output, batch)
        numbers = torch.tensor([-1 if link is None else link for link in antecedents], device=possible.device)  # (M,)
        offsets = list(itertools.accumulate(map(sum, batch.sentence_lengths()), initial=0))
        documents = output.documents.tolist()
        spans = [
            [start - offsets[document], end - offsets[document]]
            for start, end, document in zip(output.starts.tolist(), output.ends.tolist(), documents, strict=True)
        ]
        clusters: list[list[list[int]]] = [[] for _ in batch.examples]
        of_spans = torch.arange(len(spans), device=possible.device)  # (M,), the first span of each span's cluster
        for cluster in linked_clusters(antecedents):
            clusters[documents[cluster[0]]].append(cluster)
            of_spans[cluster] = cluster[0]
        of_possible = of_spans[possible.clamp(min=0)].masked_fill(possible < 0, -1)  # (M, K + 1)
        of_choices = of_spans.masked_fill(numbers < 0, -1).unsqueeze(1)  # (M, 1)
        shares = (output.antecedent_scores / self.temperature).softmax(dim=1)  # (M, K + 1)
        chances = (shares * (of_possible == of_choices)).sum(dim=1).clamp(max=1).tolist()  # (M,)
        predictions: list[dict[str, Any]] = []
        for found in clusters:
            prediction: dict[str, Any] = {"clusters": [[spans[span] for span in cluster] for cluster in found]}
            if probabilities:
                chosen = sorted(itertools.chain(*found))
                positions = {span: position for position, span in enumerate(chosen)}
                links = [antecedents[span] for span in chosen]
                prediction["mentions"] = [spans[span] for span in chosen]
                prediction["antecedents"] = [None if link is None else positions[link] for link in links]
                prediction["probabilities"] = [chances[span] for span in chosen]
            predictions.append(prediction)
        return predictions


class GroupedSentenceEncoder(nn.Module):
    """Embeds and encodes each sentence by itself, in groups of like length.

    The sentences of a document differ much in length. One padded batch would be mostly padding, and one very long
    sentence would need very much memory. So the tokens of all sentences come in one row and are padded by group.

    Arguments:
        embedder: what the tokens are read with.
        encoder: of inputs of the embedder's size D.
        input_dropout: probability of dropping a feature of a token's input.
        output_dropout: probability of variational dropout on the encoder's output.
    """

    def __init__(self, embedder: Embedder, encoder: Encoder, input_dropout: float, output_dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.input_dropout = Dropout(input_dropout)
        self.output_dropout = VariationalDropout(output_dropout)
        self.output_size = embedder.joined_size(encoder.output_size)

    def forward(
        self, embedder: Embedder, tokens: Tokens, starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> TokenVectors:
        """Encodes sentences.

        Arguments:
            tokens: one row with the tokens of all sentences; it may hold others.
            starts: (S,) where in the row each sentence begins.
            lengths: (S,) its tokens, at least 1.

        Returns:
            the vectors of the sentences' tokens, in the order of the sentences.
        """
        new_starts = np.cumsum(lengths) - lengths  # among the tokens of these sentences
        inputs, encoded, positions = [], [], []
        for rows in batches_of_like_lengths(lengths.tolist(), max_padded=_GROUP_TOKENS, least_share=_LEAST_SHARE):
            group = np.array(rows)
            sentences = padded_sentences(tokens, starts[group], lengths[group])
            embedded = embedder(sentences)
            read = self.input_dropout(embedded.inputs)  # (S, T, D) of the group
            outputs = embedded.join(self.output_dropout(self.encoder(read, sentences.mask)))  # (S, T, H)
            offsets = np.arange(lengths[group].max())  # (T,)
            is_token = offsets < lengths[group, None]  # (S, T) of the group
            flat = torch.from_numpy(np.flatnonzero(is_token)).to(read.device)
            inputs.append(read.flatten(0, 1).index_select(0, flat))
            encoded.append(outputs.flatten(0, 1).index_select(0, flat))
            positions.append((new_starts[group, None] + offsets)[is_token])
        order = torch.from_numpy(np.concatenate(positions)).to(inputs[0].device)  # (N,)
        return TokenVectors(inputs=_placed(inputs, order), encoded=_placed(encoded, order))


def padded_sentences(tokens: Tokens, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tokens:
    """Some of a row's sentences, padded to the longest of them, with the characters of only their words."""
    device = tokens.words.device
    offsets = torch.arange(int(lengths.max()), device=device)  # (T,)
    mask = offsets < torch.from_numpy(lengths).to(device).unsqueeze(1)  # (S, T)
    positions = (torch.from_numpy(starts).to(device).unsqueeze(1) + offsets).masked_fill(~mask, 0)  # (S, T)
    distinct = tokens.distinct[0, positions].masked_fill(~mask, 0)  # (S, T)
    with_padding = torch.cat([distinct.new_zeros(1), distinct.flatten()])  # row 0 of the characters is padding
    used, numbers = torch.unique(with_padding, return_inverse=True)
    row = tokens.texts[0]
    return Tokens(
        texts=[row[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)],
        mask=mask,
        words=tokens.words[0, positions].masked_fill(~mask, 0),
        distinct=numbers[1:].view_as(distinct),
        characters=tokens.characters[used],
        scales=None if tokens.scales is None else tokens.scales[0, positions],
    )


def _placed(parts: list[Tensor], order: Tensor) -> Tensor:
    """The rows of all parts, row n at position `order[n]`."""
    joined = torch.cat(parts)
    return torch.zeros_like(joined).index_copy(0, order, joined)


def consistent_links(antecedents: Tensor, scores: Tensor, kinds: Tensor) -> list[int | None]:
    """The antecedent of each span, chosen from left to right so that all spans of a chain can be of one kind.

    Arguments:
        antecedents: (M, K) int64, the possible ones of each span; negative where there are fewer.
        scores: (M, K + 1), of these; 0 for none of them in the last column.
        kinds: (M,) int64, see `possible_kinds`.
    """
    of_chains = kinds.tolist()  # of each span's chain, at the chain's first span
    first_span = list(range(len(of_chains)))  # of each span's chain
    links: list[int | None] = [None] * len(of_chains)
    order = scores.argsort(dim=1, descending=True, stable=True)  # (M, K + 1)
    none = scores.shape[1] - 1
    for span in (order[:, 0] != none).nonzero().flatten().tolist():
        for choice in order[span].tolist():
            antecedent = -1 if choice == none else int(antecedents[span, choice])
            if antecedent < 0:
                break
            chain = first_span[antecedent]
            if of_chains[chain] & of_chains[span]:
                of_chains[chain] &= of_chains[span]
                links[span], first_span[span] = antecedent, chain
                break
    return links


def linked_clusters(antecedents: Sequence[int | None]) -> list[list[int]]:
    """The clusters, of at least two spans, that links from spans to spans before them make; by their first spans."""
    members: dict[int, list[int]] = {}  # by first span
    first_span: list[int] = []  # of each span's cluster
    for span, antecedent in enumerate(antecedents):
        if antecedent is None:
            first_span.append(span)
            continue
        first_span.append(first_span[antecedent])
        members.setdefault(first_span[span], [first_span[span]]).append(span)
    return [members[first] for first in sorted(members)]


def _gold_clusters(output: CoreferenceOutput, mentions: Tensor, num_tokens: int) -> Tensor:
    """The gold cluster of each span, (M,): the last if there are several, 0 if there is none."""
    if len(mentions) == 0:
        return torch.zeros_like(output.starts)
    keys, order = torch.sort(mentions[:, 0] * num_tokens + mentions[:, 1], stable=True)  # (G,)
    expected = output.starts * num_tokens + output.ends  # (M,)
    found = (torch.searchsorted(keys, expected, right=True) - 1).clamp(min=0)
    return mentions[order[found], 2].masked_fill(keys[found] != expected, 0)
