"""What is trained on: a random share of the data, without what is held out or a fold, and with added examples."""

from __future__ import annotations

import logging
import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any, ClassVar

import datasets
from pydantic import Field, ValidationInfo, field_validator

from elmo_tasks.config import Config, Part
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.tasks import Task

logger = logging.getLogger(__name__)


class TrainShare(Config):
    """A random share of the training data. With the same seed, a smaller share is a part of a larger one.

    Examples that begin in the same line of a file, such as the phrases of a tree or the predicates of a sentence, are
    taken together. They stay in the order of the file.
    """

    share: Annotated[float, Field(gt=0, le=1)] = Field(description="of the training data; at least one example")
    seed: Annotated[int, Field(ge=0)] = Field(1, description="of the sample")

    def take(self, data: datasets.Dataset) -> datasets.Dataset:
        """The share of a data set."""
        keys = _places(data)
        units = _shuffled(keys, self.seed)
        kept = set(units[: max(1, round(self.share * len(units)))])
        return data.select([row for row, key in enumerate(keys) if key in kept])


class Fold(Config):
    """A fold of a cross-validation: it is held out from the training data and takes the place of the test data.

    Documents stay whole. Where there are fewer documents than folds, examples are split, as `TrainShare` takes them.
    """

    number: Annotated[int, Field(ge=1)] = Field(description="the fold that is held out, from 1")
    of: Annotated[int, Field(ge=2)] = Field(description="the number of folds")
    seed: Annotated[int, Field(ge=0)] = Field(1, description="of the split; the same for all folds")

    @field_validator("of")
    @classmethod
    def _has_this_number(cls, of: int, info: ValidationInfo) -> int:
        if (number := info.data.get("number", 1)) > of:
            raise ValueError(f"there is no fold {number} of {of}; expected a number from 1 to {of}")
        return of

    def split(
        self, training: datasets.Dataset, held_out: datasets.Dataset, task: Task
    ) -> tuple[datasets.Dataset, datasets.Dataset]:
        """What to train on, and what is held out.

        Arguments:
            training: the training data as the reader for training reads it.
            held_out: the same source as the reader for evaluation reads it, which may make other examples of it.

        Raises:
            ElmoTasksError: there are fewer examples than folds.
        """
        fold = slice(self.number - 1, None, self.of)
        return _split(training, held_out, task, self.seed, self.of, self.of, lambda units: units[fold])


def split_off(
    training: datasets.Dataset, held_out: datasets.Dataset, task: Task, share: float, seed: int
) -> tuple[datasets.Dataset, datasets.Dataset]:
    """What to train on, and a random share of the training data. Arguments, units and errors are as of `Fold.split`.

    If examples with one label each are split, this share of each label is held out, rounded.
    """

    def part(units: Sequence[Hashable]) -> Sequence[Hashable]:
        return units[: min(len(units) - 1, max(1, round(share * len(units))))]

    return _split(training, held_out, task, seed, math.ceil(1 / share), 2, part, share)


def _split(
    training: datasets.Dataset,
    held_out: datasets.Dataset,
    task: Task,
    seed: int,
    num_parts: int,
    fewest: int,
    choose: Callable[[Sequence[Hashable]], Sequence[Hashable]],
    share: float = 0.0,
) -> tuple[datasets.Dataset, datasets.Dataset]:
    """Holds out the units that `choose` takes: documents if there are enough for the parts, otherwise examples.

    Arguments:
        share: that of each label which is held out instead, if examples with one label each are split; 0 for none.
    """
    keys, other_keys = ([(each["file"], task.document(each)) for each in data] for data in (training, held_out))
    labels: Sequence[str] = ()
    if len(set(keys)) < num_parts or any(document is None for _, document in keys):
        logger.info("%s for %d parts: examples are split", counted(len(set(keys)), "document"), num_parts)
        keys, other_keys = _places(training), _places(held_out)
        labels = training["label"] if share and "label" in task.features else ()
    if len(units := _shuffled(keys, seed)) < fewest:
        raise ElmoTasksError(f"{counted(len(units), 'example')} to split; expected at least {fewest}")
    out: set[Hashable] = set()
    if labels:
        by_label = defaultdict[str, list[Hashable]](list)
        label_of: dict[Hashable, str] = dict(zip(keys, labels, strict=True))
        for unit in units:
            by_label[label_of[unit]].append(unit)
        for each in by_label.values():
            out.update(each[: round(share * len(each))])
    if not out:  # without labels, or with fewer than half an example of each
        out.update(choose(units))
    return (
        training.select([row for row, key in enumerate(keys) if key not in out]),
        held_out.select([row for row, key in enumerate(other_keys) if key in out]),
    )


class Augmentation(Part):
    """Adds examples to the training data that are made of its own."""

    default_type: ClassVar[str | None] = "changed_copies"

    def fault(self, task: Task) -> str | None:
        """Why the examples of a task cannot be changed; None if they can."""
        raise NotImplementedError

    def with_copies(self, data: datasets.Dataset, task: Task) -> datasets.Dataset:
        """A data set, and after it the added examples, each with the place of the one that it is made of."""
        raise NotImplementedError


def _places(data: datasets.Dataset) -> list[Any]:
    """Where each example begins: its file and line or, if the reader does not say it, its row."""
    locations = data.select_columns(["file", "line"])
    return [(each["file"], row if each["line"] is None else each["line"]) for row, each in enumerate(locations)]


def _shuffled(keys: Sequence[Hashable], seed: int) -> list[Hashable]:
    """The distinct keys in an order that depends only on them and the seed."""
    distinct = list(dict.fromkeys(keys))
    random.Random(f"sample {seed}").shuffle(distinct)  # a string seeds it the same way in every process and version
    return distinct
