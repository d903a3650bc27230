"""Span F1 of semantic roles, equal to srl-eval.pl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics.metric import LabelCounts, Metric, f1_scores, percentage
from elmo_tasks.text.tag_schemes import is_tag, spans_of_tags

VERB = "V"  # the label of the predicate's own span, which is given; so the overall score leaves it out
_CONTINUATION = "C-"


class Argument(NamedTuple):
    """A role and its tokens: one run of tokens, or several that belong together."""

    role: str
    pieces: tuple[tuple[int, int], ...]  # first and last token of each piece, both inclusive, from left to right


def arguments_of_tags(tags: Sequence[str]) -> list[Argument]:
    """The arguments of one predicate, pieces joined as srl-eval.pl joins them.

    A span C-X belongs to the last argument X that began before it; if there is none, it is itself an argument X. A span
    R-X is an argument with the role R-X.

    Arguments:
        tags: in IOB2; an I- that does not continue a span begins one.

    Raises:
        ElmoTasksError: something is not a tag of IOB2.
    """
    for tag in tags:
        if not is_tag(tag, "IOB2"):
            raise ElmoTasksError(f"{tag!r} is not a tag of IOB2; expected O, B-ROLE or I-ROLE")
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}  # the pieces of the last argument of each role
    for label, start, end in spans_of_tags(tags):
        role = label.removeprefix(_CONTINUATION)
        if role != label and role in latest:
            latest[role].append((start, end))
        else:
            latest[role] = [(start, end)]
            arguments.append((role, latest[role]))
    return [Argument(role, tuple(pieces)) for role, pieces in arguments]


class SrlF1(Metric):
    """Precision, recall and F1 of arguments, over all roles and by role, and the share of perfect propositions.

    Predictions and examples hold the IOB2 tags of one predicate under `tags`. An argument is right if its role and all
    of its pieces are. The predicate's own span V, with its pieces C-V, has scores of its own like a role. It counts
    neither in the overall scores nor for whether a proposition is perfect.

    Source: srl-eval.pl, the official scorer of the CoNLL-2005 shared task (Carreras and Màrquez 2005).

    Names of the scores: `f1`, `precision`, `recall`, `perfect`, and for each role `f1/ARG0` and so on.
    """

    main: ClassVar[str] = "f1"
    field = "tags"

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        if len(prediction["tags"]) != len(example["tags"]):
            raise ValueError(f"{len(prediction['tags'])} predicted tags for {len(example['tags'])} tokens")
        found, gold = set(arguments_of_tags(prediction["tags"])), set(arguments_of_tags(example["tags"]))
        self._arguments.add(found, gold)
        self._perfect += all(argument.role == VERB for argument in found ^ gold)
        self._propositions += 1

    def sums(self) -> Sequence[float]:
        """The arguments that are correct, found and gold, without V; the perfect propositions, and all propositions."""
        return *self._arguments.sums(without=VERB), self._perfect, self._propositions

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        correct, found, gold, perfect, propositions = np.moveaxis(sums, -1, 0)
        return {**f1_scores(correct, found, gold), "perfect": percentage(perfect, propositions)}

    def compute(self) -> dict[str, float]:
        return {**self.overall(), **self._arguments.by_label()}

    def reset(self) -> None:
        self._propositions = self._perfect = 0
        self._arguments = LabelCounts()
