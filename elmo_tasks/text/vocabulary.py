"""The words, characters and labels that a model knows, and sentences as their ids.

# B batch, T tokens of the longest sentence, U distinct words of the batch and one row of padding, C characters
"""

from __future__ import annotations

import array
import collections
import dataclasses
import functools
import itertools
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pydantic
import torch
from numpy.typing import NDArray
from pydantic import Field

from elmo_tasks.config import Config
from elmo_tasks.errors import ElmoTasksError, UnknownLabelError
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.limits import MAX_VOCABULARY_BYTES
from elmo_tasks.text.tokens import Tokens

logger = logging.getLogger(__name__)

PADDING, UNKNOWN = 0, 1
SPECIAL = ("<padding>", "<unknown>")  # the names of the rows 0 and 1; a token with this text is a word like any other
MAX_CHARACTERS = 50  # longer words are cut: addresses and lines of hyphens would need too much memory
BEGIN_WORD, END_WORD = "<begin>", "<end>"  # the border characters, where characters are bytes
BYTES = tuple(map(chr, range(256)))  # a byte is written as the code point of the same number

SENTIMENT_LABELS = ("very negative", "negative", "neutral", "positive", "very positive")  # 0 to 4 in the treebank
INFERENCE_LABELS = ("entailment", "neutral", "contradiction")  # as SNLI lists them

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")

Example = Mapping[str, Any]


class TextsAndLabels(Protocol):
    """What a vocabulary needs from a task."""

    def texts(self, example: Example) -> Iterable[Sequence[str]]: ...

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]: ...

    def key(self, example: Example) -> int: ...


@dataclasses.dataclass(frozen=True)
class Counts:
    """What one pass over a data set counts."""

    tokens: collections.Counter[str]  # as written
    labels: dict[str, collections.Counter[str]]  # by namespace
    lengths: array.array[int]  # of each example: the tokens of all its texts
    keys: array.array[int]  # of each example, see `Task.key`
    num_texts: int  # of all examples

    @classmethod
    def of(cls, task: TextsAndLabels, data: Iterable[Example]) -> Counts:
        counts = cls(collections.Counter(), {}, array.array("q"), array.array("q"), 0)
        num_texts = 0
        for example in data:
            texts = tuple(map(tuple, task.texts(example)))
            for text in texts:
                counts.tokens.update(text)
            for namespace, found in task.labels(example).items():
                counts.labels.setdefault(namespace, collections.Counter()).update(found)
            counts.lengths.append(sum(map(len, texts)))
            counts.keys.append(task.key(example))
            num_texts += len(texts)
        return dataclasses.replace(counts, num_texts=num_texts)


class VocabularyConfig(Config):
    """How the vocabulary is made from the data.

    Characters and trained words come only from the training data. Other words get a row if the file of pretrained
    vectors contains them, since such a vector needs no training. Labels come from all the data, so that rare ones that
    the training data lacks can be scored (as errors).
    """

    lowercase_words: bool = Field(
        False, description="Look words up in lower case; characters and the biLM see them as written."
    )
    byte_characters: bool = Field(
        False, description="A word's characters are the bytes of its UTF-8 instead of its code points: none is unknown."
    )
    border_characters: bool = Field(
        True, description="With bytes, two more characters mark the word's beginning and its end."
    )
    min_count: int = Field(1, ge=1, description="Words that the training data has less often get no trained vector.")
    pretrained_words: int | None = Field(
        50_000,
        ge=0,
        description="How many first words of the vectors' file get rows in addition to the data's; null: all.",
    )

    def build(self, train: Counts, other: Sequence[Counts], pretrained: Iterable[str] = ()) -> Vocabulary:
        """The vocabulary of data that is counted.

        Arguments:
            train: the training data.
            other: development and test data: their words get rows if they are in `pretrained`.
            pretrained: every word of the vectors' file, in its order.
        """
        labels: dict[str, set[str]] = {}
        for counts in (train, *other):
            for namespace, found in counts.labels.items():
                labels.setdefault(namespace, set()).update(found)
        words: collections.Counter[str] = collections.Counter()
        characters: collections.Counter[str] = collections.Counter()
        for token, count in train.tokens.items():
            words[self.key(token)] += count
            for character in token[:MAX_CHARACTERS]:
                characters[character] += count
        needed = {*words, *(self.key(token) for counts in other for token in counts.tokens)}
        trained = [word for word in _by_frequency(words) if words[word] >= self.min_count]
        first, known = math.inf if self.pretrained_words is None else self.pretrained_words, set(trained)
        fixed = dict.fromkeys(  # the words of the vectors' file that get rows, in the order of the file
            word
            for position, word in enumerate(pretrained)
            if (position < first or word in needed) and word not in known and word == self.key(word)
        )
        borders = (BEGIN_WORD, END_WORD) if self.border_characters else ()
        return Vocabulary(
            words=(*SPECIAL, *trained, *fixed),
            num_trained_words=len(SPECIAL) + len(trained),
            characters=(*SPECIAL, *((*BYTES, *borders) if self.byte_characters else _by_frequency(characters))),
            labels={namespace: tuple(sorted(found)) for namespace, found in sorted(labels.items())},
            lowercase_words=self.lowercase_words,
            byte_characters=self.byte_characters,
        )

    def key(self, word: str) -> str:
        """The form in which a word is looked up."""
        return word.lower() if self.lowercase_words else word


class _Labels(dict[str, tuple[str, ...]]):
    """The labels of each namespace. Asking for another one is an error that users can cause, by a damaged run."""

    def __missing__(self, namespace: str) -> tuple[str, ...]:
        raise ElmoTasksError(f"no labels {namespace!r}; the vocabulary has: {', '.join(self) or 'none'}")


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Immutable. A word is looked up in its exact form, or in lower case if `lowercase_words` is set.

    Of a word's characters the first 50 are kept; characters are Unicode code points, as written. With `byte_characters`
    each becomes the bytes of its UTF-8, and border characters are added if `characters` has them.
    """

    # Padding, unknown, training words (frequent first, then alphabetical), words of the vectors only.
    words: tuple[str, ...]
    num_trained_words: int  # the rows below it are padding, unknown and training words; the rest have fixed vectors
    characters: tuple[str, ...]  # padding, unknown, the training data's (frequent first, then alphabetical)
    labels: dict[str, tuple[str, ...]]  # namespace -> labels in alphabetical order
    lowercase_words: bool = False
    byte_characters: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", _Labels(self.labels))

    def index_tokens(self, texts: Sequence[Sequence[str]]) -> Tokens:
        """Sentences as tensors, padded to the longest sentence and the longest word of the batch."""
        rows: dict[str, int] = {}
        flat = [rows.setdefault(token, len(rows) + 1) for text in texts for token in text]
        mask = _mask(texts)  # (B, T)
        distinct = np.zeros(mask.shape, dtype=np.int64)
        distinct[mask] = flat
        word_ids = np.array([PADDING, *map(self.word_id, rows)], dtype=np.int64)  # (U,)
        return Tokens(
            texts=[list(text) for text in texts],
            mask=torch.from_numpy(mask),  # (B, T)
            words=torch.from_numpy(word_ids[distinct]),  # (B, T)
            distinct=torch.from_numpy(distinct),  # (B, T)
            characters=torch.from_numpy(self._index_characters(rows)),  # (U, C)
        )

    def word_id(self, word: str) -> int:
        """The row of a word, or that of the unknown word."""
        return self._word_ids.get(word.lower() if self.lowercase_words else word, UNKNOWN)

    def label_id(self, namespace: str, label: str) -> int:
        """The id of a label.

        Raises:
            UnknownLabelError: none of the data that the vocabulary was made from had this label.
            ElmoTasksError: the namespace does not exist.
        """
        known = self.labels[namespace]
        try:
            return self._label_ids[namespace][label]
        except KeyError:
            raise UnknownLabelError(namespace, label, natural_order(known) or known) from None

    def to_json(self) -> dict[str, Any]:
        """The vocabulary as a value for JSON."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def save(self, path: str | Path) -> None:
        """Writes the vocabulary as JSON, atomically."""
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Reads what `save` wrote; raises `RunError` if the file is missing or damaged."""
        file = read_json(path, _VocabularyFile, "the vocabulary of a run", most=MAX_VOCABULARY_BYTES)
        return cls(**{field.name: getattr(file, field.name) for field in dataclasses.fields(cls)})

    def _index_characters(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The characters of each word, after a row of padding."""
        ids: list[list[int]] = [[]]
        for word in words:
            characters: Sequence[str] = word[:MAX_CHARACTERS]
            if self.byte_characters:
                of_bytes = word[:MAX_CHARACTERS].encode("utf-8", "ignore").decode("latin-1")
                given = (BEGIN_WORD, *of_bytes, END_WORD)
                characters = [each for each in given if len(each) == 1 or each in self._character_ids]
            ids.append([self._character_ids.get(each, UNKNOWN) for each in characters])
        mask = _mask(ids)
        indexed = np.zeros(mask.shape, dtype=np.int64)
        indexed[mask] = list(itertools.chain.from_iterable(ids))
        return indexed  # (U, C)

    @functools.cached_property
    def _word_ids(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words) if row > UNKNOWN}

    @functools.cached_property
    def _character_ids(self) -> dict[str, int]:
        return {character: row for row, character in enumerate(self.characters) if row > UNKNOWN}

    @functools.cached_property
    def _label_ids(self) -> dict[str, dict[str, int]]:
        return {
            namespace: {label: row for row, label in enumerate(labels)} for namespace, labels in self.labels.items()
        }


class _VocabularyFile(Config):
    """The contents of a vocabulary's file."""

    words: tuple[str, ...]
    num_trained_words: int
    characters: tuple[str, ...]
    labels: dict[str, tuple[str, ...]]
    lowercase_words: bool
    byte_characters: bool = False  # runs of earlier versions lack it

    @pydantic.model_validator(mode="after")
    def _is_consistent(self) -> _VocabularyFile:
        for names in (self.words, self.characters):
            if names[: len(SPECIAL)] != SPECIAL:
                raise ValueError(f"words and characters begin with {names[: len(SPECIAL)]}; expected {SPECIAL}")
        if not len(SPECIAL) <= self.num_trained_words <= len(self.words):
            raise ValueError(f"num_trained_words is {self.num_trained_words}; expected 2 to {len(self.words)}")
        return self


def _mask(rows: Sequence[Sequence[Any]]) -> NDArray[np.bool_]:
    """(N, longest), True for the first entries of each row, as many as it has."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    return np.arange(lengths.max(initial=0)) < lengths[:, None]


def _by_frequency(counts: Mapping[str, int]) -> list[str]:
    """Frequent first; equally frequent ones in alphabetical order (of code points)."""
    return sorted(counts, key=lambda item: (-counts[item], item))


def natural_order(labels: Iterable[str]) -> list[str] | None:
    """Labels, each once, in the order of their publisher or of their numbers; None if they have no such order.

    Results are shown in this order. Models keep that of their vocabulary, which their weights belong to.
    """
    distinct = list(dict.fromkeys(labels))
    for published in (SENTIMENT_LABELS, INFERENCE_LABELS):
        if all(label.lower() in published for label in distinct):
            return sorted(distinct, key=lambda label: published.index(label.lower()))
    return sorted(distinct, key=float) if all(_NUMBER.fullmatch(label) for label in distinct) else None
