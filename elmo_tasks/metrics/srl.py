"""Span F1 of semantic roles, equal to srl-eval.pl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics.metric import Metric, f1_score, percentage
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
            raise ElmoTasksError(f"{tag!r} is not a tag of IOB2; wanted O, B-ROLE or I-ROLE")
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

    def __init__(self) -> None:
        self.reset()

    def update(self, predictions: Sequence[Mapping[str, Any]], examples: Sequence[Mapping[str, Any]]) -> None:
        for prediction, example in zip(predictions, examples, strict=True):
            if len(prediction["tags"]) != len(example["tags"]):
                raise ValueError(f"{len(prediction['tags'])} predicted tags for {len(example['tags'])} tokens")
            found, gold = set(arguments_of_tags(prediction["tags"])), set(arguments_of_tags(example["tags"]))
            self._correct.update(argument.role for argument in found & gold)
            self._excess.update(argument.role for argument in found - gold)
            self._missed.update(argument.role for argument in gold - found)
            self._perfect += all(argument.role == VERB for argument in found ^ gold)
            self._propositions += 1

    def compute(self) -> dict[str, float]:
        perfect = percentage(self._perfect, self._propositions)
        scores = {**self._scores("", *self._overall()), "perfect": perfect}
        for role in sorted(self._correct.keys() | self._excess.keys() | self._missed.keys()):
            scores |= self._scores(f"/{role}", self._correct[role], self._excess[role], self._missed[role])
        return scores

    def reset(self) -> None:
        self._propositions = 0
        self._perfect = 0
        self._correct: Counter[str] = Counter()
        self._excess: Counter[str] = Counter()  # predicted, but wrong
        self._missed: Counter[str] = Counter()

    def _overall(self) -> tuple[int, int, int]:
        counts = (self._correct, self._excess, self._missed)
        correct, excess, missed = (counter.total() - counter[VERB] for counter in counts)
        return correct, excess, missed

    @staticmethod
    def _scores(ending: str, correct: int, excess: int, missed: int) -> dict[str, float]:
        precision, recall = percentage(correct, correct + excess), percentage(correct, correct + missed)
        f1 = f1_score(precision, recall)
        return {f"f1{ending}": f1, f"precision{ending}": precision, f"recall{ending}": recall}
