"""The numbers that options take: each has its bounds, and an error that names them."""

from __future__ import annotations

import argparse

MOST = 2**31 - 1  # of whole numbers; those that libraries in C take are not larger
_MOST_SEED = 2**32 - 1
_MOST_SEEDS = 10_000  # in a list


class Number:
    """What parses an option's value as a whole number within bounds.

    Arguments:
        low, high: the bounds, which are included.
        name: what the number is, for errors.
    """

    def __init__(self, low: int, high: int = MOST, name: str = "a whole number") -> None:
        self.low, self.high, self.name = low, high, name

    def __call__(self, text: str) -> int:
        if (number := whole_number(text)) is None or not self.low <= number <= self.high:
            upper = f"of at least {self.low}" if self.high == MOST else f"from {self.low} to {self.high}"
            most = f" and at most {MOST}" if self.high == MOST and number is not None and number > MOST else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not {self.name} {upper}{most}")
        return number


positive, not_negative, at_least_two = Number(1), Number(0), Number(2)
random_seed = Number(0, _MOST_SEED)
port = Number(0, 65535, "a port")


def whole_number(text: str) -> int | None:
    """The whole number that a text is in decimal digits, None if it is not one."""
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isdecimal() and digits.isascii() and len(digits) < 20 else None


def seeds(text: str) -> tuple[int, ...]:
    """Seeds such as `1-3` or `1,2,5`."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        start, stop = whole_number(first), whole_number(last if dash else first)
        if start is None or stop is None or not 0 <= start <= stop <= _MOST_SEED:
            expected = f"expected one such as 1-3 or 1,2,5, of numbers from 0 to {_MOST_SEED}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of seeds; {expected}")
        if len(numbers) + stop - start >= _MOST_SEEDS:
            raise argparse.ArgumentTypeError(f"{text!r} has too many seeds; expected at most {_MOST_SEEDS}")
        numbers += range(start, stop + 1)
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text!r} has a seed twice; expected each once")
    return tuple(numbers)
