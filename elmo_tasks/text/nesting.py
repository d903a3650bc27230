"""Spans in a text, in the order in which a writer of brackets, tags or colours needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple


class Piece(NamedTuple):
    """A piece of text, or the position where a span opens or closes."""

    kind: Literal["text", "open", "close"]
    text: str = ""
    span: int = -1  # the number of the span that opens or closes


def nested_pieces(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Yields a text in pieces, between the places where its spans open and close.

    Arguments:
        spans: first character of each, and the one after its last. They may nest. One that crosses an earlier one is
            left out. Of equal ones the first is the outermost.
    """
    # Spans close before others open at the same position: the innermost, which opened last, first.
    # Of those that open at a position, the longest comes first, since it is the outermost.
    drawn = _without_crossing(spans)
    closing = [(spans[number][1], 0, -spans[number][0], -number) for number in drawn]
    opening = [(spans[number][0], 1, -spans[number][1], number) for number in drawn]
    last = 0
    for position, opens, _, number in sorted(closing + opening):
        if last < position:
            yield Piece("text", text[last:position])
            last = position
        yield Piece("open" if opens else "close", span=abs(number))
    if last < len(text):
        yield Piece("text", text[last:])


def _without_crossing(spans: Sequence[tuple[int, int]]) -> list[int]:
    """The numbers of the spans that cross none of those which begin before them."""
    kept: list[int] = []
    ends: list[int] = []  # of the spans that are open, the innermost last
    for number in sorted(range(len(spans)), key=lambda number: (spans[number][0], -spans[number][1])):
        start, end = spans[number]
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or end <= ends[-1]:
            kept.append(number)
            ends.append(end)
    return kept
