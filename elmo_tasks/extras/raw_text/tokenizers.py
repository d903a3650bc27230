"""Tokenizers for any language, and their configs: by Unicode's word boundaries, and by a regular expression."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Literal

import pydantic
import regex
from pydantic import Field

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tokenization import UNSEEN
from elmo_tasks.text.tokenizer_config import TokenizerConfig
from elmo_tasks.text.tokenizers import Tokenizer

# Where a sentence ends: after a mark that white space and no lower-case letter follow, but not after the period of an
# initial or of a small number, which may be an ordinal ("am 3. Mai"); after a full stop of Chinese or Japanese; and at
# a blank line. Brackets and quotes that close belong to the sentence.
_SENTENCE_END = regex.compile(
    r"""
    (?<![.!?…])  # only at the first of several marks, so that the search takes linear time
    (?: (?<!\b\p{L}) (?<!\b\d{1,2}) \. | [!?…] )++ ["'\p{Pi}\p{Pf}\p{Pe}]*+ (?= \s++ [^\s\p{Ll}] )
    | [\u3002\uFF01\uFF1F\uFF61]++ ["'\p{Pf}\p{Pe}]*+
    | \n [^\S\n]* \n
    """,
    regex.VERBOSE,
)
_UNSEEN = regex.compile(UNSEEN)
# Unicode's default word boundaries (UAX #29): each ideograph is a word, and combining marks stay with their letter.
_WORD_BOUNDARY = regex.compile(r"\b", regex.WORD | regex.VERSION1)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The (start, end) of each sentence and of what follows the last one."""
    ends = (match.end() for match in _SENTENCE_END.finditer(text))
    return itertools.pairwise(itertools.chain([0], ends, [len(text)]))


class UnicodeTokenizer(Tokenizer):
    """Text in any language: words by Unicode's word boundaries, each Chinese character and each mark a token.

    Marks that nobody sees are white space.

    Source: Unicode Standard Annex #29, "Unicode Text Segmentation", as the package `regex` implements it.
    """

    version = "unicode 2"

    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        text = _UNSEEN.sub(" ", text)
        for start, end in _sentences(text):
            borders = sorted({start, end, *(match.start() for match in _WORD_BOUNDARY.finditer(text, start, end))})
            tokens = [(one, other) for one, other in itertools.pairwise(borders) if not text[one:other].isspace()]
            if tokens:
                yield tokens


class RegexTokenizer(Tokenizer):
    """Text in any language: the tokens are what an expression matches; what lies between them is left out.

    Raises:
        ElmoTasksError: the pattern is not an expression of the package `regex`.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        try:
            self._token = regex.compile(pattern)
        except regex.error as error:
            raise ElmoTasksError(f"the tokenizer's pattern {pattern!r} is not a regular expression: {error}") from None

    @property
    def version(self) -> str:
        return f"regex 1 {self.pattern}"

    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        for start, end in _sentences(text):
            found = (match.span() for match in self._token.finditer(text, start, end))
            if tokens := [(one, other) for one, other in found if one < other]:
                yield tokens


class UnicodeConfig(TokenizerConfig):
    """Any language: words by Unicode's word boundaries; each Chinese character is a token."""

    type: Literal["unicode"] = "unicode"

    def build(self) -> Tokenizer:
        return UnicodeTokenizer()


class RegexConfig(TokenizerConfig):
    """Any language: tokens are the matches of a regular expression."""

    type: Literal["regex"] = "regex"
    pattern: Annotated[str, Field(min_length=1, description="What a token looks like, for the Python package regex.")]

    @pydantic.field_validator("pattern")
    @classmethod
    def _is_an_expression(cls, pattern: str) -> str:
        try:
            RegexTokenizer(pattern)
        except ElmoTasksError as error:
            raise ValueError(str(error)) from None
        return pattern

    def build(self) -> Tokenizer:
        return RegexTokenizer(self.pattern)
