"""Spans in a text, in the order in which a writer of brackets, tags or colours needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple


class Piece(NamedTuple):
    """A piece of text, or the place where a span opens or closes."""

    kind: Literal["text", "open", "close"]
    text: str = ""
    span: int = -1  # the number of the span that opens or closes


def nested_pieces(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Yields a text in pieces, between the places where its spans open and close.

    Arguments:
        spans: first and last character of each, the end exclusive. They may nest, but not cross. Of equal ones the
            first is the outermost.
    """
    # Spans close before others open at the same place: the innermost, which opened last, first.
    # Of those that open at a place, the longest comes first, since it is the outermost.
    closing = [(end, 0, -start, -number) for number, (start, end) in enumerate(spans)]
    opening = [(start, 1, -end, number) for number, (start, end) in enumerate(spans)]
    last = 0
    for place, opens, _, number in sorted(closing + opening):
        if last < place:
            yield Piece("text", text[last:place])
            last = place
        yield Piece("open" if opens else "close", span=abs(number))
    if last < len(text):
        yield Piece("text", text[last:])
