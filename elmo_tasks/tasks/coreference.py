"""Coreference: which mentions of a document refer to the same thing.

# B documents, N tokens of all of them, G mentions of all of them
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics import Metric
from elmo_tasks.metrics.coreference import CoreferenceScores
from elmo_tasks.tasks.task import INTEGERS, STRING, STRINGS, Batch, Example, Task
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

GENRES = "genres"  # the namespace of the labels
NO_SPEAKER = "-"
UNKNOWN_GENRE = 0  # genre number n of the vocabulary is n + 1 in a batch
UNKNOWN_SPEAKER = 0


@dataclasses.dataclass(frozen=True)
class CoreferenceBatch(Batch):
    """Documents, all in one row of tokens, without padding. The position of a token is its index in the row."""

    tokens: Tokens  # a single row, (1, N), with the sentences of all documents in their order
    speakers: Tensor  # (N,) int64, numbered separately for each document; 0 if not known
    genres: Tensor  # (B,) int64, 0 if not known
    mentions: Tensor | None  # (G, 3) int64: first and last token, cluster from 1; None if not known
    kept: Tensor | None = None  # (M, 3) int64, sorted: document, first and last token of spans to keep; None: the best

    def sentence_lengths(self) -> list[list[int]]:
        """The tokens of each sentence of each document."""
        return [list(map(len, example["sentences"])) for example in self.examples]

    def lengths(self, tokens: Tokens) -> list[int]:
        return list(map(sum, self.sentence_lengths()))


@dataclasses.dataclass(frozen=True)
class Coreference(Task):
    """Clusters of mentions, of whole documents.

    An example is

        {"document": str, "genre": str | None, "sentences": [[str]], "speakers": [[str]], "clusters": [[[int, int]]]}

    `speakers` has a name for each token, `-` if not known. `clusters` are lists of mentions `[first, last token]`,
    counted in the document, ends inclusive. For prediction, `sentences` are enough.

    A batch has 0 for no genre, and for one that the vocabulary does not have; the log names each such genre once.
    """

    name: ClassVar[str] = "coreference"
    summary: ClassVar[str] = "documents with clusters of mentions"
    features: ClassVar[Mapping[str, Any]] = {
        "document": STRING,
        "genre": STRING,
        "sentences": [STRINGS],
        "speakers": [STRINGS],
        "clusters": [[INTEGERS]],
    }
    optional: ClassVar[frozenset[str]] = frozenset({"document", "genre", "speakers"})
    sentence_columns: ClassVar[tuple[str, ...]] = ("sentences",)

    _reported_genres: set[str] = dataclasses.field(default_factory=set, init=False, repr=False, compare=False)

    def texts(self, example: Example) -> Iterable[Sequence[str]]:
        return example["sentences"]

    def fault(self, example: Example) -> str | None:
        num_tokens = sum(map(len, example["sentences"]))
        for mention in itertools.chain.from_iterable(example["clusters"]):
            if len(mention) != 2 or not 0 <= mention[0] <= mention[1] < num_tokens:
                expected = f"[first, last token] in a document of {num_tokens} tokens, the last inclusive"
                return f"the mention {list(mention)}; expected {expected}"
        return super().fault(example) or _speakers_mismatch(example)

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        genre = example.get("genre")
        return {GENRES: [] if genre is None else [genre]}

    def unknown_labels(self, example: Example, vocabulary: Vocabulary) -> list[str]:
        return []  # a genre is not a gold label

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> CoreferenceBatch:
        row = [token for example in examples for sentence in example["sentences"] for token in sentence]
        speakers = [number for example in examples for number in _speaker_numbers(example)]
        genres = [self._genre_number(example.get("genre"), vocabulary) for example in examples]
        return CoreferenceBatch(
            examples=examples,
            tokens=vocabulary.index_tokens([row]),
            speakers=torch.tensor(speakers, dtype=torch.int64),  # (N,)
            genres=torch.tensor(genres, dtype=torch.int64),  # (B,)
            mentions=self._mentions(examples),
        )

    def nothing_to_learn(self, examples: Iterable[Example]) -> str | None:
        if any(example["clusters"] for example in examples):
            return None
        return "no document has a chain of coreference; expected mentions that refer to the same thing in at least one"

    def build_metric(self) -> Metric:
        return CoreferenceScores("clusters")

    def _genre_number(self, genre: str | None, vocabulary: Vocabulary) -> int:
        if genre is None:
            return UNKNOWN_GENRE
        if genre in vocabulary.labels[GENRES]:
            return vocabulary.label_id(GENRES, genre) + 1
        if genre not in self._reported_genres:
            self._reported_genres.add(genre)
            known = ", ".join(vocabulary.labels[GENRES]) or "none"
            logger.warning("the genre %r is not among those of the run (%s) and counts as unknown", genre, known)
        return UNKNOWN_GENRE

    def _mentions(self, examples: Sequence[Example]) -> Tensor | None:
        """The gold mentions by their positions in the batch, (G, 3)."""
        if any(example.get("clusters") is None for example in examples):
            return None
        mentions = []
        offset = number = 0
        for example in examples:
            for cluster in example["clusters"]:
                number += 1
                mentions += [(offset + start, offset + end, number) for start, end in cluster]
            offset += self.length(example)
        return torch.tensor(mentions, dtype=torch.int64).view(-1, 3)


def token_speakers(given: Any, sentences: Sequence[Sequence[str]], name: str) -> list[list[str]]:
    """A speaker for each token: `-` where it is not known, because it is null, blank or left out.

    Arguments:
        given: for each sentence a speaker, or one for each of its tokens; an empty list or null if none is known.
        name: what messages call it.

    Raises:
        ElmoTasksError: the speakers are something else, or do not fit the sentences.
    """
    given = [None] * len(sentences) if given is None or given == [] else given
    if not isinstance(given, list) or len(given) != len(sentences):
        raise ElmoTasksError(
            f"{name!r} is {given!r}; expected a list with as many items as there are sentences, {len(sentences)}"
        )
    speakers = []
    for number, (item, tokens) in enumerate(zip(given, sentences, strict=True)):
        names = [item or None] * len(tokens) if item is None or item == [] or isinstance(item, str) else item
        are_names = isinstance(names, list) and all(each is None or isinstance(each, str) for each in names)
        if not are_names or len(names) != len(tokens):
            expected = f"a speaker, or one for each of {len(tokens)} tokens"
            raise ElmoTasksError(f"'{name}[{number}]' is {item!r}; expected {expected}")
        speakers.append([each if each and each.strip() else NO_SPEAKER for each in names])
    return speakers


def _speakers_mismatch(example: Example) -> str | None:
    """What is wrong unless there are no speakers, or one for each token."""
    sentences, speakers = example["sentences"], example.get("speakers")
    if speakers is None or list(map(len, speakers)) == list(map(len, sentences)):
        return None
    return "speakers do not fit the sentences; expected a speaker for each token of each sentence"


def _speaker_numbers(example: Example) -> list[int]:
    """A number for the speaker of each token of the document, in the order in which they first speak."""
    sentences, speakers = example["sentences"], example.get("speakers")
    if speakers is None:
        return [UNKNOWN_SPEAKER] * sum(map(len, sentences))
    if mismatch := _speakers_mismatch(example):
        raise ElmoTasksError(mismatch)
    numbers = {NO_SPEAKER: UNKNOWN_SPEAKER}
    return [numbers.setdefault(speaker, len(numbers)) for sentence in speakers for speaker in sentence]
