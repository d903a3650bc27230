"""Changed copies of training examples: in lower case, in capitals, as a title, or without a final mark.

Annotated text is mostly edited, so that a model sees no text as people type it. A changed copy has the labels of its
original.
"""

from __future__ import annotations

import itertools
import logging
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from elmo_tasks.data_readers.sources import DataSet
from elmo_tasks.tasks import Classification, Coreference, SemanticRoles, Tagging, Task
from elmo_tasks.tasks.tagging import TAGS
from elmo_tasks.tasks.task import Example
from elmo_tasks.text.tag_schemes import OUTSIDE
from elmo_tasks.training.data_splits import Augmentation

logger = logging.getLogger(__name__)

Change = Literal["lower", "upper", "title", "no_final_mark"]
CHANGES: tuple[Change, ...] = get_args(Change)
FINAL_MARKS = (".", "!", "?")

_TASKS = (Tagging, SemanticRoles, Coreference, Classification)
Share = Annotated[float, Field(ge=0, le=1)]


class ChangedCopies(Augmentation):
    """The shares of the training examples of which a changed copy is added. An example that is like that gets none."""

    type: Literal["changed_copies"] = "changed_copies"
    lower: Share = Field(0.0, description="in lower case")
    upper: Share = Field(0.0, description="in capitals")
    title: Share = Field(0.0, description="with a capital at the beginning of each word")
    no_final_mark: Share = Field(0.0, description="without a last . ! or ? that is in no span; not for coreference")

    def fault(self, task: Task) -> str | None:
        if not isinstance(task, _TASKS):
            names = ", ".join(each.name for each in _TASKS)
            return f"expected one of the tasks {names}, got {task.name}"
        if self.no_final_mark and isinstance(task, Coreference):
            return f"no_final_mark: expected a task of single sentences, got {task.name}"
        return None

    def with_copies(self, data: DataSet, task: Task) -> DataSet:
        """A data set, and after it the changed copies of its examples, each with the place of its original.

        The predicates of a sentence are changed together. Which sentences are changed depends only on how many there
        are. Each has one copy at most, unless the shares add up to more than 1.
        """
        units = defaultdict[Hashable, list[int]](list)
        for row, example in enumerate(data):
            units[task.unit(row, example)].append(row)
        order = list(units.values())
        random.Random("augment").shuffle(order)  # a string seeds it the same way in every process and version
        dealt = itertools.cycle(order)
        copies: list[dict[str, Any]] = []
        counts: Counter[Change] = Counter()
        for change in CHANGES:
            chosen = itertools.islice(dealt, round(getattr(self, change) * len(order)))
            found = (changed(data[row], change, task) for row in sorted(itertools.chain.from_iterable(chosen)))
            copies += (copy for copy in found if copy)
            counts[change] = len(copies) - counts.total()
        numbers = ", ".join(f"{change} {number:,}" for change, number in (+counts).items()) or "none"
        logger.info("augment: changed copies added to the training examples: %s", numbers)
        import datasets

        parts = [data, datasets.Dataset.from_list(copies, features=data.features)] if copies else [data]
        return datasets.concatenate_datasets(parts)


def changed(example: Example, change: Change, task: Task) -> dict[str, Any] | None:
    """A changed copy of an example with labels; None if nothing changes. Documents and labelled spans stay whole."""
    if change == "no_final_mark":
        return None if isinstance(task, Coreference) else _without_final_mark(example, task)
    texts = {column: _in_case(example[column], _CASES[change]) for column in task.sentence_columns}
    return {**example, **texts} if any(texts[column] != example[column] for column in texts) else None


def _in_case(tokens: list[Any], case: Callable[[str], str]) -> list[Any]:
    """The tokens of a sentence or of several in another case."""
    return [case(each) if isinstance(each, str) else _in_case(each, case) for each in tokens]


def _title(token: str) -> str:
    """With a capital at the beginning, unless it is a part of a word, such as n't."""
    return token if {"'", "\N{RIGHT SINGLE QUOTATION MARK}"} & set(token) else token[:1].upper() + token[1:]


_CASES: Mapping[Change, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "title": _title}


def _without_final_mark(example: Example, task: Task) -> dict[str, Any] | None:
    """Without the last token and its tag: a part of speech, say, or O."""
    *tokens, mark = example["tokens"]
    if isinstance(task, Classification):
        return {**example, "tokens": tokens} if tokens and mark in FINAL_MARKS else None
    *tags, tag = example[TAGS]
    in_no_span = tag == OUTSIDE or (isinstance(task, Tagging) and task.tag_scheme is None)
    if not tokens or mark not in FINAL_MARKS or not in_no_span or example.get("predicate") == len(tokens):
        return None
    return {**example, "tokens": tokens, TAGS: tags}
