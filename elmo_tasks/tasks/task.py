"""What every task defines: the columns of an example, its texts and labels, its length, its batches and its metric."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics import Metric
from elmo_tasks.text.tokens import TensorRecord, Tokens
from elmo_tasks.text.vocabulary import Vocabulary

Example = Mapping[str, Any]
PartT = TypeVar("PartT")

# The types of columns, by the names that `datasets` gives them; `[type]` is a list of such values.
STRING, INTEGER, NUMBER = "string", "int64", "float64"
STRINGS, INTEGERS = [STRING], ["int32"]


@dataclasses.dataclass(frozen=True)
class Batch(TensorRecord):
    """The base of every task's batch. `examples` are the data set's rows, in the order of the tensors' first axis."""

    examples: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.examples)

    def lengths(self, tokens: Tokens) -> list[int]:
        """How many of a batch's tokens, which are in the order of the examples, each example has."""
        return list(map(len, tokens.texts))


@dataclasses.dataclass(frozen=True)
class Task(ABC):
    """What the readers, the heads and the predictor of a task agree on.

    A reader makes its examples from files, a predictor makes them from text, and a head reads its batches. The fields
    of a task are settings that a reader and a head may have to share: a subclass compares them in `mismatch`, whose
    message proposes the config's key of the same name.

    Class attributes:
        name: what configs and pages call the task; what belongs to it is registered under this name. A subclass that
            sets none has `module.Class`, and uses what is registered for its base classes.
        summary: what the examples are, in a few words, for messages.
        features: the columns of an example of a data set, and their types. An example to predict has no labels.
        optional: the columns that examples given in memory may lack.
        sentence_columns: the columns of sentences, as lists of tokens or as lists of such lists: a reader warns where
            one is longer than a sentence can be.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    features: ClassVar[Mapping[str, Any]]
    optional: ClassVar[frozenset[str]] = frozenset()
    sentence_columns: ClassVar[tuple[str, ...]] = ("tokens",)

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = f"{cls.__module__}.{cls.__qualname__}"

    @classmethod
    def names(cls) -> list[str]:
        """The names of the task and of its base classes, the nearest first."""
        return [vars(kind)["name"] for kind in cls.__mro__ if "name" in vars(kind)]

    def texts(self, example: Example) -> Iterable[Sequence[str]]:
        """The token sequences of an example, for the vocabulary and the biLM; by default its `tokens`."""
        return (example["tokens"],)

    def fault(self, example: Example) -> str | None:
        """What is wrong with a labelled example whose columns have the right types; None if nothing is."""
        texts = list(self.texts(example))
        return None if texts and all(texts) else "there is a text without a token; expected at least one in each"

    @abstractmethod
    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        """The labels that an example adds to the vocabulary, by namespace."""

    def unknown_labels(self, example: Example, vocabulary: Vocabulary) -> list[str]:
        """The gold labels of an example that a vocabulary lacks, as often as the example has them."""
        lacking: set[str] = set()
        for namespace, labels in self.labels(example).items():
            lacking.update(set(labels).difference(vocabulary.labels[namespace]))
        if not lacking:
            return []
        return [label for label in self.gold_labels(example) if label in lacking]

    def gold_labels(self, example: Example) -> Sequence[str]:
        """The labels that a head learns from an example: one, or one for each token; none if it learns others."""
        gold: str | Sequence[str] = example.get(self.predicted_field, ())
        return [gold] if isinstance(gold, str) else gold

    def length(self, example: Example) -> int:
        """The length of an example for batches of a bounded size, by default the number of all its tokens."""
        return sum(map(len, self.texts(example)))

    def asks(self, example: Example) -> tuple[Any, ...]:
        """What is given of an example to predict, by default its texts. Examples may share it and differ in labels."""
        return tuple(map(tuple, self.texts(example)))

    def key(self, example: Example) -> int:
        """A hash of what an example asks, 64 bits with a sign, the same in every process and version."""
        asked = json.dumps(self.asks(example)).encode()
        return int.from_bytes(hashlib.blake2b(asked, digest_size=8).digest(), "big", signed=True)

    def unit(self, row: int, example: Example) -> Hashable:
        """Tests of significance draw and swap examples with the same value together; by default, each by itself."""
        return row

    def document(self, example: Example) -> str | int | None:
        """The document of its file that an example is from; None if it is not known."""
        return example.get("document")

    @abstractmethod
    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> Batch:
        """A batch of examples as tensors. Labels are None unless every example has them.

        Raises:
            UnknownLabelError: the vocabulary does not have a label.
        """

    @abstractmethod
    def build_metric(self) -> Metric:
        """A new metric for predictions of this task."""

    @functools.cached_property
    def predicted_field(self) -> str:
        """The key of what is predicted, in predictions and in examples: the one that the metric reads."""
        return self.build_metric().field

    def nothing_to_learn(self, examples: Iterable[Example]) -> str | None:
        """Why nothing can be learned from a whole data set or scored on it; None if something can."""
        return None

    def compared_labels(self, record: Mapping[str, Any]) -> Sequence[str]:
        """The labels of an example or of its prediction, in the same order, for confusion tables and balanced samples.

        Raises:
            ElmoTasksError: the task does not predict labels.
        """
        raise ElmoTasksError(f"a confusion table needs a run that predicts labels or tags, not {type(self).__name__}")

    def mismatch(self, expected: Task) -> str | None:
        """Why a head of the task `expected` cannot learn from examples of this task.

        None if it can: the task is the same, or a special case (a subclass) of the expected one.
        """
        if isinstance(self, type(expected)):
            return None
        return f"{self.summary} ({type(self).__name__}); expected {expected.summary} ({type(expected).__name__})"


class TaskRegistry(dict[str, PartT]):
    """One thing of each task that a room above has, by the task's name, such as its predictor.

    A task of another package is added under its own name.
    """

    def find(self, task: Task) -> PartT | None:
        """The thing of a task or, if it has none, of the nearest of its base classes; None if none of them has one."""
        return next((self[name] for name in task.names() if name in self), None)
