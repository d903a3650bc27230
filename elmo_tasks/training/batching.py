"""Length-bucketed batches, the same for a seed however many processes share them and wherever a run resumes."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import datasets
import torch
from pydantic import Field, model_validator
from torch.utils.data import DataLoader

from elmo_tasks.config import Config
from elmo_tasks.tasks import Batch, Task
from elmo_tasks.text.batches import batches_of_like_lengths
from elmo_tasks.text.vocabulary import Vocabulary


class DataLoaderConfig(Config):
    """How examples are put into batches.

    A batch is what all processes see together: its size does not change with their number.
    """

    batch_size: Annotated[int, Field(ge=1)] | None = Field(None, description="most examples in a batch")
    batch_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="most tokens in a batch: its examples times the longest one's length, as the task counts it "
        "(of a pair, both texts); an example that is longer is a batch of its own",
    )
    shuffle: bool = Field(True, description="new batches, in a new order, each epoch")
    padding_noise: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.1, description="examples of like length share a batch; lengths are first changed by up to this share"
    )
    num_workers: Annotated[int, Field(ge=0)] = Field(
        0, description="processes that prepare batches beside the training one; 0 prepares them in the training process"
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> DataLoaderConfig:
        if self.batch_size is None and self.batch_tokens is None:
            raise ValueError("wanted 'batch_size', 'batch_tokens' or both, got neither")
        return self

    def for_evaluation(self) -> DataLoaderConfig:
        """The same limits, in a fixed order."""
        return self.model_copy(update={"shuffle": False})

    def build(
        self,
        data: datasets.Dataset,
        task: Task,
        vocabulary: Vocabulary,
        *,
        seed: int = 0,
        rank: int = 0,
        num_processes: int = 1,
    ) -> BatchLoader:
        return BatchLoader(self, data, task, vocabulary, seed=seed, rank=rank, num_processes=num_processes)


@dataclasses.dataclass(frozen=True)
class Share:
    """What one process takes of a batch: rows of the data set, and their weight in the mean over the whole batch.

    The weight is such that the mean over processes of (weight x the share's mean loss) is the batch's mean loss.
    """

    rows: tuple[int, ...]
    weight: float


class BatchLoader:
    """Batches of one data set for one process."""

    def __init__(
        self,
        config: DataLoaderConfig,
        data: datasets.Dataset,
        task: Task,
        vocabulary: Vocabulary,
        *,
        seed: int,
        rank: int,
        num_processes: int,
    ) -> None:
        self.config = config
        self.data = data
        self.seed = seed
        self.rank = rank
        self.num_processes = num_processes
        self._collate = functools.partial(_collate, task=task, vocabulary=vocabulary)
        self._lengths = [task.length(example) for example in data]

    def plan(self, epoch: int) -> list[list[int]]:
        """The rows of every batch of an epoch; a function of the seed, the epoch and the data alone."""
        config = self.config
        # A string seeds Python's generator the same way in every process and version.
        generator = random.Random(f"{self.seed}/{epoch}")
        if config.shuffle:
            order = list(range(len(self._lengths)))
            generator.shuffle(order)
            noise = {row: 1 + generator.uniform(-config.padding_noise, config.padding_noise) for row in order}
            order.sort(key=lambda row: self._lengths[row] * noise[row])
        else:
            order = sorted(range(len(self._lengths)), key=self._lengths.__getitem__, reverse=True)
        most_rows, most_padded = config.batch_size or math.inf, config.batch_tokens or math.inf
        batches = list(batches_of_like_lengths(self._lengths, order, max_rows=most_rows, max_padded=most_padded))
        if config.shuffle:
            generator.shuffle(batches)
        return batches

    def steps(self, epoch: int, batches_per_step: int = 1, first: int = 0) -> Iterator[list[tuple[Batch, float]]]:
        """Yields, from step `first` of an epoch on, this process's (batch, weight) pairs of each optimizer step."""
        plan = self.plan(epoch)
        groups = [plan[start : start + batches_per_step] for start in range(0, len(plan), batches_per_step)][first:]
        shares = [self._shares(group) for group in groups]
        batches = iter(self._load([share.rows for group in shares for share in group]))
        for group in shares:
            yield [(next(batches), share.weight) for share in group]

    def num_steps(self, epoch: int, batches_per_step: int = 1) -> int:
        return math.ceil(len(self.plan(epoch)) / batches_per_step)

    def _shares(self, group: Sequence[Sequence[int]]) -> list[Share]:
        total = sum(map(len, group))
        shares = []
        for batch in group:
            rows = tuple(batch[self.rank :: self.num_processes])
            # With fewer examples than processes, one works on an example that counts for nothing.
            shares.append(Share(rows or (batch[0],), len(rows) * self.num_processes / total))
        return shares

    def once(self) -> Iterator[tuple[list[int], Batch | None]]:
        """Yields (rows, batch), this process's part of every batch of epoch 0: each row comes in only one process.

        All processes yield equally often. A process that has no part of a batch yields ([], None).
        """
        parts = [batch[self.rank :: self.num_processes] for batch in self.plan(0)]
        batches = iter(self._load([tuple(part) for part in parts if part]))
        for part in parts:
            yield part, next(batches) if part else None

    def _load(self, batches: list[tuple[int, ...]]) -> DataLoader[Any]:
        return DataLoader(
            self.data,
            batch_sampler=[list(rows) for rows in batches],
            collate_fn=self._collate,
            num_workers=self.config.num_workers,
            pin_memory=False,
            # The loader draws a number for its workers; it must not come from the generator that dropout uses.
            generator=torch.Generator(),
        )


def _collate(examples: list[dict[str, Any]], task: Task, vocabulary: Vocabulary) -> Batch:
    return task.collate(examples, vocabulary)
