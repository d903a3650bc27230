"""What is trained on: a random share of the data, without what is held out or a fold, and with added examples."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from elmo_tasks.config import Config, Part
from elmo_tasks.data_readers.sources import DataSet
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.task import Example


class TrainShare(Config):
    """A random share of the training data. With the same seed, a smaller share is a part of a larger one.

    Examples that begin in the same line of a file, such as the phrases of a tree or the predicates of a sentence, are
    taken together. They stay in the order of the file.
    """

    share: Annotated[float, Field(gt=0, le=1)] = Field(description="of the training data; at least one example")
    seed: Annotated[int, Field(ge=0)] = Field(1, description="of the sample")

    def take(self, data: DataSet) -> DataSet:
        """The share of a data set."""
        keys = _places(data)
        units = _shuffled(keys, self.seed)
        kept = set(units[: max(1, round(self.share * len(units)))])
        return data.select([row for row, key in enumerate(keys) if key in kept])


class Fold(Config):
    """A fold of a cross-validation: it is held out from the training data, as validation data.

    Documents stay whole. Where there are fewer documents than folds, examples are split, as `TrainShare` takes them;
    those that ask the same are in one fold.
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
        self,
        training: DataSet,
        held_out: DataSet,
        task: Task,
        earlier: Mapping[int, int] | None = None,
    ) -> tuple[DataSet, DataSet]:
        """What to train on, and what is held out.

        Folds have the same number of units and, if examples with one label each are split, of each label.

        Arguments:
            training: the training data as the reader for training reads it.
            held_out: the same source as the reader for evaluation reads it, which may make other examples of it.
            earlier: the folds of examples that an earlier run knows, by `Task.key`; they stay in them.

        Raises:
            ElmoTasksError: there are fewer examples than folds.
        """
        units = _units(training, task, self.seed, self.of, fewest=self.of, earlier=earlier)
        folds = {unit.key: unit.part for unit in units if unit.part and 1 <= unit.part <= self.of}
        sizes = Counter(dict.fromkeys(range(1, self.of + 1), 0) | Counter(folds.values()))
        for unit in sorted(units, key=lambda unit: unit.label):
            if unit.key not in folds:
                folds[unit.key] = min(sizes, key=lambda number: (sizes[number], number))
                sizes[folds[unit.key]] += 1
        return _parted(training, held_out, task, self.of, {key for key in folds if folds[key] == self.number})


def split_off(
    training: DataSet,
    held_out: DataSet,
    task: Task,
    share: float,
    seed: int,
    earlier: Mapping[int, int] | None = None,
) -> tuple[DataSet, DataSet]:
    """What to train on, and a random share of the training data. Arguments, units and errors are as of `Fold.split`.

    If examples with one label each are split, this share of each label is held out, rounded.

    Arguments:
        earlier: whether an earlier run has held an example out (a negative number) or learned from it, by `Task.key`.
    """
    units = _units(training, task, seed, num_parts=math.ceil(1 / share), fewest=2, earlier=earlier)
    out = {unit.key for unit in units if unit.part is not None and unit.part < 0}
    by_label = defaultdict[str, list[_Unit]](list)
    for unit in units:
        if unit.part is None:
            by_label[unit.label].append(unit)
    for each in by_label.values():
        out.update(unit.key for unit in each[: round(share * len(each))])
    if not out:  # with fewer than half an example of each label
        out.add(units[0].key)
    if len(out) == len(units):
        out.remove(units[-1].key)
    return _parted(training, held_out, task, math.ceil(1 / share), out)


def most_folds(training: DataSet, task: Task) -> int:
    """Into how many folds data can be split: how many examples there are that do not ask the same."""
    return len(set(_unit_keys(training, task, num_parts=len(training) + 1)))


class _Unit(NamedTuple):
    """What is held out together."""

    key: Hashable
    label: str  # of its example; empty for documents and for tasks without one label
    part: int | None  # where an earlier run had it


def _units(
    training: DataSet, task: Task, seed: int, num_parts: int, fewest: int, earlier: Mapping[int, int] | None
) -> list[_Unit]:
    """The units of the training data in an order that depends on the seed; see `_unit_keys`."""
    keys = _unit_keys(training, task, num_parts)
    if len(order := _shuffled(keys, seed)) < fewest:
        raise ElmoTasksError(f"{counted(len(order), 'example')} to split; expected at least {fewest}")
    labels = dict[Hashable, str]()
    if "label" in task.features and not isinstance(keys[0][-1], _Document):
        labels = dict(zip(keys, training["label"], strict=True))
    parts = dict[Hashable, int]()
    if earlier:
        for key, example in zip(keys, training, strict=True):
            if (part := earlier.get(task.key(example))) is not None:
                parts.setdefault(key, part)
    return [_Unit(key, labels.get(key, ""), parts.get(key)) for key in order]


class _Document(NamedTuple):
    """The name or the number of a document in its file."""

    name: str | int


def _unit_keys(data: DataSet, task: Task, num_parts: int) -> list[Any]:
    """The unit of each example: its document, if there are enough documents for the parts; otherwise its place, which
    is that of the first example that asks the same or differs only in case, spaces and marks.
    """
    documents = [task.document(each) for each in data]
    keys = [(file, _Document(name)) for file, name in zip(data["file"], documents, strict=True) if name is not None]
    if len(keys) == len(data) and len(set(keys)) >= num_parts:
        return keys
    first = dict[Any, Any]()
    places = _places(data)
    first_of_place = dict[Any, Any]()
    for place, example in zip(places, data, strict=True):
        first_of_place.setdefault(place, first.setdefault(_letters(task, example), place))
    return [first_of_place[place] for place in places]


def _letters(task: Task, example: Example) -> str:
    """The letters and digits of what an example asks, in lower case; if it has none, all of it."""
    asked = str(task.asks(example))
    return "".join(filter(str.isalnum, asked.casefold())) or asked


def _parted(
    training: DataSet, held_out: DataSet, task: Task, num_parts: int, out: Set[Hashable]
) -> tuple[DataSet, DataSet]:
    """The rows of the training data that are not in some units, and the rows of the held-out data that are."""
    keys = [_unit_keys(data, task, num_parts) for data in (training, held_out)]
    return (
        training.select([row for row, key in enumerate(keys[0]) if key not in out]),
        held_out.select([row for row, key in enumerate(keys[1]) if key in out]),
    )


class Augmentation(Part):
    """Adds examples to the training data that are made of its own."""

    default_type: ClassVar[str | None] = "changed_copies"

    def fault(self, task: Task) -> str | None:
        """Why the examples of a task cannot be changed; None if they can."""
        raise NotImplementedError

    def with_copies(self, data: DataSet, task: Task) -> DataSet:
        """A data set, and after it the added examples, each with the place of the one that it is made of."""
        raise NotImplementedError


def _places(data: DataSet) -> list[Any]:
    """Where each example begins: its file and line or, if the reader does not say it, its row."""
    locations = data.select_columns(["file", "line"])
    return [(each["file"], row if each["line"] is None else each["line"]) for row, each in enumerate(locations)]


def _shuffled(keys: Sequence[Hashable], seed: int) -> list[Hashable]:
    """The distinct keys in an order that depends only on them and the seed."""
    distinct = list(dict.fromkeys(keys))
    random.Random(f"sample {seed}").shuffle(distinct)  # a string seeds it the same way in every process and version
    return distinct
