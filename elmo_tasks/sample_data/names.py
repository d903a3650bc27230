"""Made-up names, built from syllables, so that development and test data can have names that training data lacks."""

from __future__ import annotations

import random
from collections.abc import Sequence

_ONSETS = ("b", "br", "d", "dr", "f", "g", "h", "k", "kl", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ei", "oa")
_CODAS = ("", "", "", "l", "m", "n", "r", "s", "th")


def make_names(generator: random.Random, counts: Sequence[int]) -> list[list[str]]:
    """Lists of names of these lengths. All names are different and have two or three syllables, for example Tavori.

    The form of a name does not show whether it names a person, a place or something else.
    """
    names: dict[str, None] = {}
    while len(names) < sum(counts):
        syllables = (_syllable(generator) for _ in range(generator.choice((2, 2, 3))))
        names["".join(syllables).capitalize()] = None
    remaining = iter(names)
    return [[next(remaining) for _ in range(count)] for count in counts]


def _syllable(generator: random.Random) -> str:
    return generator.choice(_ONSETS) + generator.choice(_VOWELS) + generator.choice(_CODAS)
