"""Length-bucketed batches. They depend neither on the number of processes nor on where a run resumes."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, model_validator
from torch.utils.data import DataLoader

from elmo_tasks.config import Config
from elmo_tasks.data_readers.sources import DataSet
from elmo_tasks.errors import UnknownLabelError
from elmo_tasks.tasks import Batch, Task
from elmo_tasks.text.tokens import batches_of_like_lengths
from elmo_tasks.text.vocabulary import Vocabulary


class DataLoaderConfig(Config):
    """How examples are put into batches. All processes together share a batch: its size does not depend on them."""

    batch_size: Annotated[int, Field(ge=1)] | None = Field(None, description="most examples in a batch")
    batch_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="most tokens in a batch: its examples times the longest one's length, as the task counts it "
        "(of a pair, both texts); a longer example is a separate batch",
    )
    min_batches: Annotated[int, Field(ge=1)] = Field(
        1,
        description="the fewest batches in an epoch of training: a small data set is read several times in an epoch, "
        "so that `num_epochs` and `patience` suit data of any size",
    )
    shuffle: bool = Field(True, description="new batches, in a new order, each epoch")
    sampling: Literal["balanced"] | None = Field(
        None,
        description="'balanced': an epoch has as many examples as the training data, drawn from it with replacement, "
        "so that every label is as frequent; a sentence with tags counts for the rarest kind of tag that it has",
    )
    padding_noise: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.1, description="examples of similar length share a batch; lengths are first changed by up to this share"
    )
    num_workers: Annotated[int, Field(ge=0)] = Field(
        0, description="additional processes that prepare batches; 0 prepares them in the training process"
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> DataLoaderConfig:
        if self.batch_size is None and self.batch_tokens is None:
            raise ValueError("expected 'batch_size', 'batch_tokens' or both, got neither")
        if self.sampling and not self.shuffle:
            raise ValueError(f"sampling: '{self.sampling}' draws new examples each epoch; expected shuffle: true")
        return self


class BatchLoader:
    """Batches of one data set for one process, number `rank` of `num_processes`.

    Arguments:
        without_gold: rows with gold labels that the vocabulary lacks. They are in batches of their own, which have no
            gold labels as tensors; only for data that is not shuffled.
        lengths: of the examples, where they are known; by default the task counts them, in a pass over the data.
    """

    def __init__(
        self,
        config: DataLoaderConfig,
        data: DataSet,
        task: Task,
        vocabulary: Vocabulary,
        *,
        seed: int = 0,
        rank: int = 0,
        num_processes: int = 1,
        without_gold: Set[int] = frozenset(),
        lengths: Sequence[int] | None = None,
    ) -> None:
        self.config = config
        self.data = data
        self.task = task
        self.seed = seed
        self.rank = rank
        self.num_processes = num_processes
        self.without_gold = without_gold
        collate = functools.partial(_collate_without_gold, task) if without_gold else task.collate
        self._collate = functools.partial(collate, vocabulary=vocabulary)
        self._lengths = [task.length(example) for example in data] if lengths is None else lengths
        self._shares = balanced_shares(task, data) if config.sampling else None
        self._passes = math.ceil(config.min_batches / max(1, len(self._pass(0)))) if config.min_batches > 1 else 1

    def plan(self, epoch: int) -> list[list[int]]:
        """The rows of every batch of an epoch; they depend only on the seed, the epoch and the data."""
        first = epoch * self._passes
        return [batch for number in range(first, first + self._passes) for batch in self._pass(number)]

    def _pass(self, number: int) -> list[list[int]]:
        """The rows of every batch of one pass over the data."""
        config = self.config
        # A string seeds Python's generator the same way in every process and version.
        generator = random.Random(f"{self.seed}/{number}")
        if config.shuffle:
            order = list(range(len(self._lengths)))
            if self._shares:
                order = generator.choices(order, self._shares, k=len(order))
            else:
                generator.shuffle(order)
            noise = config.padding_noise
            lengths = [self._lengths[row] * (1 + generator.uniform(-noise, noise)) for row in order]
            order = [order[index] for index in sorted(range(len(order)), key=lengths.__getitem__)]
        else:
            order = sorted(range(len(self._lengths)), key=self._lengths.__getitem__, reverse=True)
        parts = [[row for row in order if (row in self.without_gold) is without] for without in (False, True)]
        most_rows, most_padded = config.batch_size or math.inf, config.batch_tokens or math.inf
        limits = {"max_rows": most_rows, "max_padded": most_padded}
        batches = [batch for part in parts for batch in batches_of_like_lengths(self._lengths, part, **limits)]
        if config.shuffle:
            generator.shuffle(batches)
        return batches

    def steps(self, epoch: int, batches_per_step: int = 1, first: int = 0) -> Iterator[list[tuple[Batch, float]]]:
        """Yields, from step `first` of an epoch on, this process's (batch, weight) pairs of each optimizer step.

        The mean over processes of the sum of weight x mean loss of a batch is the mean loss of the step's examples.
        """
        plan = self.plan(epoch)[first * batches_per_step :]
        parts = [batch[self.rank :: self.num_processes] for batch in plan]
        # With fewer examples than processes, one works on an example that counts for nothing.
        batches = iter(self._load([part or batch[:1] for part, batch in zip(parts, plan, strict=True)]))
        for start in range(0, len(plan), batches_per_step):
            step = slice(start, start + batches_per_step)
            total = sum(map(len, plan[step]))
            yield [(next(batches), len(part) * self.num_processes / total) for part in parts[step]]

    def num_steps(self, epoch: int, batches_per_step: int = 1) -> int:
        return math.ceil(len(self.plan(epoch)) / batches_per_step)

    def once(self) -> Iterator[tuple[list[int], Batch | None]]:
        """Yields (rows, batch), this process's part of every batch of epoch 0, or ([], None) where it has no part."""
        parts = [batch[self.rank :: self.num_processes] for batch in self.plan(0)]
        batches = iter(self._load([part for part in parts if part]))
        for part in parts:
            yield part, next(batches) if part else None

    def _load(self, batches: list[list[int]]) -> DataLoader[Any]:
        return DataLoader(
            self.data,
            batch_sampler=batches,
            collate_fn=self._collate,
            num_workers=self.config.num_workers,
            # The loader draws a number for its workers; it must not come from the generator that dropout uses.
            generator=torch.Generator(),
        )


def balanced_shares(task: Task, data: DataSet) -> list[float]:
    """How often each example is drawn, relative to the others, so that every label is as frequent.

    An example counts for one label only: for a sentence with tags, the one that the fewest sentences have. In a scheme
    of spans this is a kind of span such as PER, or O where there is none. Other labels of the sentence come with it, so
    that frequent ones stay more frequent.

    Raises:
        ElmoTasksError: the task does not predict labels.
    """
    labels = [set(task.compared_labels(example)) for example in data]
    frequency = Counter(label for found in labels for label in found)
    rarest = [min(found, key=lambda label: (frequency[label], label), default="") for found in labels]
    share = Counter(rarest)
    return [1 / share[label] for label in rarest]


def _collate_without_gold(task: Task, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> Batch:
    """A batch of examples; where the vocabulary lacks a gold label, one without gold labels as tensors."""
    try:
        return task.collate(examples, vocabulary)
    except UnknownLabelError:
        gold = task.predicted_field
        inputs = [{column: value for column, value in example.items() if column != gold} for example in examples]
        return dataclasses.replace(task.collate(inputs, vocabulary), examples=examples)
