"""Coreference: one example for each document, from the columns of CoNLL-2012.

Source: Pradhan et al. (2012), see `conll2012`; the clusters are those of `coreference_column`.

# B documents, N tokens of all of them, G mentions of all of them
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import datasets
import torch
from torch import Tensor

from elmo_tasks.data_readers.conll2012 import Conll2012Document, conll2012_files, read_conll2012
from elmo_tasks.data_readers.coreference_column import parse_coreference_column
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tokens import Batch, Tokens
from elmo_tasks.text.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

GENRES = "genres"  # the namespace of the labels
NO_SPEAKER = "-"  # as the column of speakers has it
UNKNOWN_GENRE = 0  # genre number n of the vocabulary is n + 1 in a batch
UNKNOWN_SPEAKER = 0


@dataclasses.dataclass(frozen=True)
class CoreferenceBatch(Batch):
    """Documents, all in one row of tokens, without padding. The place of a token is that in the row."""

    tokens: Tokens  # a single row, (1, N), with the sentences of all documents in their order
    speakers: Tensor  # (N,) int64, numbers that are a document's own; 0 where no speaker is known
    genres: Tensor  # (B,) int64, 0 where the genre is not known
    mentions: Tensor | None  # (G, 3) int64: first and last place, cluster from 1; None where they are not known

    def sentence_lengths(self) -> list[list[int]]:
        """The tokens of each sentence of each document."""
        return [list(map(len, example["sentences"])) for example in self.examples]


class CoreferenceConll2012Config(DatasetReaderConfig):
    """Coreference from the columns of CoNLL-2012: OntoNotes, OntoGUM, and others in the same form."""

    type: Literal["coref_conll2012"] = "coref_conll2012"

    def build(self) -> CoreferenceConll2012Reader:
        return CoreferenceConll2012Reader(self)


class CoreferenceConll2012Reader(DatasetReader):
    """Reads a file, compressed or not, or all files of a folder (`conll2012.conll2012_files` says which).

    Makes an example of each document, or part of one:

        {"document": str, "genre": str | None, "sentences": [[str]], "speakers": [[str]], "clusters": [[[int, int]]]}

    `document` is the name and part as the file has them: `bc/cctv/00/cctv_0000; part 000`. `genre` is what stands
    before the name's first slash, None without one. `speakers` has a name for each token, `-` where none is known.
    `clusters` are as annotated, not merged or filtered: lists of mentions `[first token, last token]`, offsets in the
    document, ends inclusive. A document without any token gives no example; how many there are is logged. For
    prediction, `sentences` are enough.

    A batch has 0 for a genre that the vocabulary does not have, as it has for none at all; the log says so, once for
    each such genre.

    Raises (from `read`):
        DataError: what `conll2012.read_conll2012` refuses; a malformed cell of the coreference column, a mention that
            is closed but not opened or is never closed. File and line are named.
    """

    features: ClassVar[datasets.Features] = datasets.Features(
        {
            "document": datasets.Value("string"),
            "genre": datasets.Value("string"),
            "sentences": datasets.Sequence(datasets.Sequence(datasets.Value("string"))),
            "speakers": datasets.Sequence(datasets.Sequence(datasets.Value("string"))),
            "clusters": datasets.Sequence(datasets.Sequence(datasets.Sequence(datasets.Value("int32")))),
        }
    )
    version: ClassVar[int] = 1

    def __init__(self, config: CoreferenceConll2012Config) -> None:
        super().__init__(config)
        self._reported_genres: set[str] = set()

    def files(self, path: Path) -> Sequence[Path]:
        return conll2012_files(path)

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        empty = 0
        for document in read_conll2012(path):
            if document.sentences:
                yield _example(document)
            else:
                empty += 1
        if empty:
            logger.info("%s: %d document(s) without any token are left out", path, empty)

    def tokens(self, example: Mapping[str, Any]) -> Iterable[Sequence[str]]:
        return example["sentences"]

    def labels(self, example: Mapping[str, Any]) -> Mapping[str, Iterable[str]]:
        genre = example.get("genre")
        return {GENRES: [] if genre is None else [genre]}

    def length(self, example: Mapping[str, Any]) -> int:
        return sum(map(len, example["sentences"]))

    def collate(self, examples: list[dict[str, Any]], vocab: Vocabulary) -> CoreferenceBatch:
        row = [token for example in examples for sentence in example["sentences"] for token in sentence]
        speakers = [number for example in examples for number in _speaker_numbers(example)]
        genres = [self._genre_number(example.get("genre"), vocab) for example in examples]
        return CoreferenceBatch(
            examples=examples,
            tokens=vocab.index_tokens([row]),
            speakers=torch.tensor(speakers, dtype=torch.int64),  # (N,)
            genres=torch.tensor(genres, dtype=torch.int64),  # (B,)
            mentions=self._mentions(examples),
        )

    def _genre_number(self, genre: str | None, vocab: Vocabulary) -> int:
        if genre is None:
            return UNKNOWN_GENRE
        if genre in vocab.labels[GENRES]:
            return vocab.label_id(GENRES, genre) + 1
        if genre not in self._reported_genres:
            self._reported_genres.add(genre)
            known = ", ".join(vocab.labels[GENRES]) or "none"
            logger.warning("the genre %r is not among those of the run (%s) and counts as unknown", genre, known)
        return UNKNOWN_GENRE

    def _mentions(self, examples: Sequence[Mapping[str, Any]]) -> Tensor | None:
        """The gold mentions as places in the batch, (G, 3)."""
        if any(example.get("clusters") is None for example in examples):
            return None
        mentions = []
        first_place = number = 0
        for example in examples:
            for cluster in example["clusters"]:
                number += 1
                mentions += [(first_place + start, first_place + end, number) for start, end in cluster]
            first_place += self.length(example)
        return torch.tensor(mentions, dtype=torch.int64).view(-1, 3)


def _example(document: Conll2012Document) -> dict[str, Any]:
    cells = [
        (sentence.first_line + position, cell)
        for sentence in document.sentences
        for position, cell in enumerate(sentence.coreference)
    ]
    genre, slash, _ = document.name.partition("/")
    return {
        "document": f"{document.name}; part {document.part:03}",
        "genre": genre if slash and genre else None,
        "sentences": [list(sentence.words) for sentence in document.sentences],
        "speakers": [list(sentence.speakers) for sentence in document.sentences],
        "clusters": parse_coreference_column(cells, document.path),
    }


def _speaker_numbers(example: Mapping[str, Any]) -> list[int]:
    """A number for the speaker of each token of the document, in the order in which they first speak."""
    sentences, speakers = example["sentences"], example.get("speakers")
    if speakers is None:
        return [UNKNOWN_SPEAKER] * sum(map(len, sentences))
    if list(map(len, speakers)) != list(map(len, sentences)):
        raise ElmoTasksError("speakers do not fit the sentences; wanted a speaker for each token of each sentence")
    numbers = {NO_SPEAKER: UNKNOWN_SPEAKER}
    return [numbers.setdefault(speaker, len(numbers)) for sentence in speakers for speaker in sentence]
