"""A token in its sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from elmo_tasks.errors import ElmoTasksError


@dataclasses.dataclass(frozen=True)
class TokenInContext:
    """A token of a sentence. `index` counts from 0."""

    sentence: tuple[str, ...]
    index: int

    @property
    def word(self) -> str:
        return self.sentence[self.index]

    def marked(self) -> str:
        """The sentence with the token in brackets: `The dog let out a sharp [bark] .`"""
        before, after = self.sentence[: self.index], self.sentence[self.index + 1 :]
        return " ".join([*before, f"[{self.word}]", *after])


def find_token(sentence: Sequence[str], word: str) -> TokenInContext:
    """Finds a word in a sentence, ignoring case.

    Raises:
        ElmoTasksError: the word does not occur exactly once.
    """
    indices = [index for index, token in enumerate(sentence) if token.lower() == word.lower()]
    if len(indices) != 1:
        count = "is not" if not indices else f"occurs {len(indices)} times"
        raise ElmoTasksError(f"{word!r} {count} in {' '.join(sentence)!r}; expected a token that occurs once")
    return TokenInContext(tuple(sentence), indices[0])
