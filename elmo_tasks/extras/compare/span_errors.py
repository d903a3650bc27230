"""Errors of labelled spans, for tagging and semantic roles, as their scorers count spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from elmo_tasks.metrics import Metric, SrlF1
from elmo_tasks.metrics.srl import VERB, arguments_of_tags
from elmo_tasks.text.tag_schemes import spans_of_tags

KINDS = ("right", "type", "boundary", "both", "missed", "spurious")


class LabelledSpan(NamedTuple):
    """A label and the pieces that it spans: first and last token of each, both inclusive."""

    label: str
    pieces: tuple[tuple[int, int], ...]

    def tokens(self) -> list[int]:
        return [token for start, end in self.pieces for token in range(start, end + 1)]


def spans_of(metric: Metric, tags: Sequence[str]) -> set[LabelledSpan]:
    """What the scorer counts: spans, or the arguments of a predicate without the predicate itself."""
    if isinstance(metric, SrlF1):
        return {LabelledSpan(*argument) for argument in arguments_of_tags(tags) if argument.role != VERB}
    return {LabelledSpan(label, ((start, end),)) for label, start, end in spans_of_tags(tags)}


def align(
    found: set[LabelledSpan], gold: set[LabelledSpan]
) -> Iterator[tuple[str, LabelledSpan | None, LabelledSpan | None]]:
    """Pairs predicted and gold spans, each at most once, with the kind of their error.

    - `right`: the same span with the same label, as the scorers want it;
    - `type`: the same span with another label;
    - `boundary`: the same label, and the spans overlap;
    - `both`: another label, and the spans overlap;
    - `missed`, `spurious`: a gold or a predicted span that is left.

    The kinds go in this order, so that a gold span is a boundary error only if no span has exactly its tokens; of
    several that overlap, the pair with the most common tokens comes first. So the gold spans are all kinds but
    `spurious`, and the predicted ones are all kinds but `missed`. The kinds are those of the MUC-5 scorer (Chinchor
    and Sundheim 1993), with its incorrect and partial matches told apart.

    Yields:
        the kind, the predicted and the gold span; None for a span that is missed or spurious.
    """
    pairs = []
    for one in found:
        for other in gold:
            if one == other:
                pairs.append((0, 0, other, one))
            elif common := len({*one.tokens()} & {*other.tokens()}):
                kind = 1 if one.pieces == other.pieces else 2 if one.label == other.label else 3
                pairs.append((kind, -common, other, one))
    left_found, left_gold = set(found), set(gold)
    for kind, _, other, one in sorted(pairs, key=lambda pair: (pair[0], pair[1], pair[2].pieces, pair[3])):
        if one in left_found and other in left_gold:
            left_found.remove(one)
            left_gold.remove(other)
            yield KINDS[kind], one, other
    yield from (("missed", None, other) for other in sorted(left_gold))
    yield from (("spurious", one, None) for one in sorted(left_found))
