"""Names built from syllables: no real person, place or firm is meant, and as many as wanted are unseen in training."""

from __future__ import annotations

import random

_ONSETS = ("b", "br", "d", "dr", "f", "g", "h", "k", "kl", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ei", "oa")
_CODAS = ("", "", "", "l", "m", "n", "r", "s", "th")


def make_names(generator: random.Random, count: int) -> list[str]:
    """`count` different names of two or three syllables, such as Tavori: nothing in their form tells what they name."""
    names: dict[str, None] = {}
    while len(names) < count:
        syllables = (_syllable(generator) for _ in range(generator.choice((2, 2, 3))))
        names["".join(syllables).capitalize()] = None
    return list(names)


def _syllable(generator: random.Random) -> str:
    return generator.choice(_ONSETS) + generator.choice(_VOWELS) + generator.choice(_CODAS)
