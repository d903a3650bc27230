"""What a result is drawn with, on any target: marked text, shaded text, bars, heat maps and rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from elmo_tasks.rendering.label_meanings import color_of

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
    """A table of numbers from 0 to 1. A terminal leaves it out, as it is seldom wide enough."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    title: str = ""


@dataclasses.dataclass(frozen=True)
class Rows:
    """Names and values, for results that nothing more is known about."""

    items: Sequence[tuple[str, str]]


_LEAST = 0.0005  # a share that is not written as 0.0 %

Part: TypeAlias = MarkedText | ShadedText | SignedText | Bars | HeatMap | Rows
Drawing: TypeAlias = list[Part]


def percent(share: float) -> str:
    """A share in percent. One that only rounding makes nothing or all is written as a bound."""
    if 0 <= share < _LEAST:
        return "<0.1 %"
    if share > 1 - _LEAST:
        return ">99.9 %"
    return f"{100 * share:.1f} %"
