"""What a result is drawn with, on any target: marked text, shaded text, bars, heat maps and rows; and their colours."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

# Light colours, for dark letters on a light or a dark background.
PALETTE = ("#8ecae6", "#ffb877", "#a8d98f", "#f4a6c0", "#c9b6f2", "#f2d85c", "#7fd6c2", "#d9b99b")
INK = "#1b1b1b"  # the letters


class Colors(dict[str, int]):
    """The index in the palette of each label: its own (`color_of`), or the next one at its first use."""

    def __missing__(self, label: str) -> int:
        own = color_of(label)
        return self.setdefault(label, (len(self) if own is None else own) % len(PALETTE))


@dataclasses.dataclass(frozen=True)
class Mark:
    """A labelled span of a text: first and last character, the end exclusive. Spans may nest, but not cross."""

    start: int
    end: int
    label: str
    probability: float | None = None


@dataclasses.dataclass(frozen=True)
class MarkedText:
    """A text with labelled spans, perhaps none."""

    text: str
    marks: Sequence[Mark] = ()
    title: str = ""


@dataclasses.dataclass(frozen=True)
class ShadedText:
    """A text whose tokens are as dark as their weight is large.

    Arguments:
        offsets: first and last character of each token, the end exclusive.
        tips: what a page shows for each token below the pointer; by default its weight in percent, a share from 0 to 1.
    """

    text: str
    offsets: Sequence[tuple[int, int]]
    weights: Sequence[float]
    title: str = ""
    tips: Sequence[str] | None = None

    def shares(self) -> list[float]:
        """The weights as shares of the largest."""
        largest = max(self.weights, default=0) or 1
        return [weight / largest for weight in self.weights]


@dataclasses.dataclass(frozen=True)
class SignedText:
    """Tokens that are as dark as the size of their share, from -1 to 1, is large: those for and those against."""

    tokens: Sequence[tuple[str, float]]
    title: str

    def darkness(self) -> list[float]:
        """The shares, with signs, as shares of the largest size."""
        largest = max((abs(share) for _, share in self.tokens), default=0) or 1
        return [share / largest for _, share in self.tokens]


@dataclasses.dataclass(frozen=True)
class Bars:
    """Names with a share each, from 0 to 1. Those at the places `chosen` are what the model chose."""

    shares: Sequence[tuple[str, float]]
    title: str = ""
    chosen: Sequence[int] = (0,)


@dataclasses.dataclass(frozen=True)
class HeatMap:
    """A table of numbers from 0 to 1, perhaps with texts. A terminal leaves it out, as it is seldom wide enough."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    title: str = ""
    texts: Sequence[Sequence[str]] | None = None


@dataclasses.dataclass(frozen=True)
class Rows:
    """Names and values, for results that nothing more is known about."""

    items: Sequence[tuple[str, str]]


_LEAST = 0.0005  # a share that is not written as 0.0 %

Figure: TypeAlias = MarkedText | ShadedText | SignedText | Bars | HeatMap | Rows
Drawing: TypeAlias = list[Figure]


def percent(share: float) -> str:
    """A share in percent. One that only rounding makes nothing or all is written as a bound."""
    if 0 <= share < _LEAST:
        return "<0.1 %"
    if share >= 1 - _LEAST:
        return ">99.9 %"
    return f"{100 * share:.1f} %"


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
    drawn: list[int] = []  # the numbers of the spans that cross none of those which begin before them
    ends: list[int] = []  # of the spans that are open, the innermost last
    for number in sorted(range(len(spans)), key=lambda number: (spans[number][0], -spans[number][1])):
        start, end = spans[number]
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or end <= ends[-1]:
            drawn.append(number)
            ends.append(end)
    closing = [(spans[number][1], 0, -spans[number][0], -number) for number in drawn]
    opening = [(spans[number][0], 1, -spans[number][1], number) for number in drawn]
    last = 0
    for position, opens, _, number in sorted(closing + opening):
        yield Piece("text", text[last:position])
        yield Piece("open" if opens else "close", span=abs(number))
        last = position
    yield Piece("text", text[last:])


# Labels of the trained models. All labels of one string have the same colour: the first string the first, and so on.
_NAMES = ("LOC", "MISC", "ORG", "PER")
_PARTS_OF_SPEECH = (  # of the Penn Treebank, with what the English Web Treebank adds
    "NN NNS",
    "VB VBD VBG VBN VBP VBZ MD",
    "JJ JJR JJS",
    "NNP NNPS",
    "DT PDT WDT PRP PRP$ WP WP$ EX",
    "RB RBR RBS WRB",
    "CD FW UH SYM $ LS ADD AFX GW",
    "IN CC TO RP POS",
)
_ROLES = (
    "ARG0",
    "ARG1 ARG1-DSP",
    "ARG2",
    "ARG3 ARG4 ARG5 ARGA",
    "ARGM-TMP",
    "ARGM-LOC ARGM-DIR ARGM-GOL",
    "ARGM-MNR ARGM-CAU ARGM-PRP ARGM-PNC ARGM-EXT ARGM-COM ARGM-ADV "
    "ARGM-MOD ARGM-NEG ARGM-DIS ARGM-ADJ ARGM-LVB ARGM-PRR ARGM-PRD ARGM-REC ARGM-CXN",
    "V",
)
PUNCTUATION = frozenset([".", ",", ":", "HYPH", "``", "''", "-LRB-", "-RRB-", "NFP"])
"""The tags of punctuation, which is not coloured."""

_COLORS = {
    label: color
    for groups in (_NAMES, _PARTS_OF_SPEECH, _ROLES)
    for color, group in enumerate(groups)
    for label in group.split()
}

CONTINUES = re.compile("^[CR]-")  # C-ARG1 continues ARG1, and R-ARG1 refers to it


def color_of(label: str) -> int | None:
    """The number of a label's colour, None if it has none of its own. Chains are numbered from 1, colours from 0."""
    is_number = label.isdecimal() and len(label) < 10
    return int(label) - 1 if is_number else _COLORS.get(CONTINUES.sub("", label))
