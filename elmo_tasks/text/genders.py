"""What a mention can refer to, as far as its words say: a man, a woman, a thing, or several of any kind."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

MALE, FEMALE, THING, SEVERAL = 1, 2, 4, 8
ANY = MALE | FEMALE | THING | SEVERAL  # the words say nothing

_LETTERS = {"m": MALE, "f": FEMALE, "n": THING, "p": SEVERAL}
_LIST = Path(__file__).with_suffix(".txt")


@functools.cache
def _words(name: str) -> frozenset[str]:
    """The words of the lines of the list that begin with this name."""
    lines = map(str.split, _LIST.read_text(encoding="utf-8").splitlines())
    return frozenset(word for line in lines if line[:1] == [name] for word in line[1:])


@functools.cache
def _listed() -> dict[str, int]:
    """What each pronoun, noun, title and first name can refer to."""
    kinds = ("m", "f", "mf", "mfp", "mfn", "n", "p")
    return {word: sum(_LETTERS[letter] for letter in name) for name in kinds for word in _words(name)}


def is_pronoun(mention: Sequence[str]) -> bool:
    """Whether a mention's tokens are a personal, possessive or reflexive pronoun."""
    return len(mention) == 1 and mention[0].lower() in _words("pronoun")


def possible_kinds(mention: Sequence[str]) -> int:
    """What a mention can refer to: the sum of some of `MALE`, `FEMALE`, `THING` and `SEVERAL`; `ANY` if unknown.

    Decided from its tokens, by a list of pronouns, titles, nouns for persons and first names, and by the word "and".
    Other names and nouns are unknown.
    """
    words = mention[:-1] if len(mention) > 1 and mention[-1] in _words("possessive") else mention
    is_after = (at for at, word in enumerate(words) if at and word.lower() in _words("before"))
    words = words[: next(is_after, len(words))]
    if "and" in words[1:-1]:
        return SEVERAL
    if len(words) > 1 and words[0].lower() in _words("several"):
        return SEVERAL
    head = words[-1]
    if not head[:1].isupper():
        return _of_word(head) or ANY
    if head.lower() in _words("place"):
        return ANY
    name = [word for word in words if word[:1].isupper() and word.lower() != "the" and not is_pronoun([word])]
    # Of a name of several words, the title or the first name counts before the last word: "Miss King".
    return (len(name) > 1 and _of_word(name[0])) or _of_word(head) or ANY


def _of_word(word: str) -> int | None:
    """What a noun, or a name with a capital or in capitals, can refer to; None if it is not in the list."""
    listed = _listed()
    return listed.get(word.lower()) or listed.get(word.capitalize() if word.isupper() else word)
