"""Raw text to sentences and tokens with exact character offsets, in several ways.

Worker processes import this module: it imports neither torch nor pydantic. `tokenizer_config` has the settings.
"""

from __future__ import annotations

import abc
import itertools
import re
from collections.abc import Iterator

import regex

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text import tokenization
from elmo_tasks.text.tokenization import Token

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
# Marks that nobody sees: of the byte order, of the direction, and spaces and joiners without a width. They are white
# space here. Those within words stay: the soft hyphen, and the joiners of Persian words and of emoji.
_UNSEEN = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
# Unicode's default word boundaries (UAX #29): each ideograph is a word, and combining marks stay with their letter.
_WORD_BOUNDARY = regex.compile(r"\b", regex.WORD | regex.VERSION1)


class Tokenizer(abc.ABC):
    """Splits raw text into sentences and those into tokens. Subclasses only define `spans`, and name their `version`.

    Objects can be pickled, since worker processes use them, and used by several threads.
    """

    @property
    @abc.abstractmethod
    def version(self) -> str:
        """Names the tokenizer in the keys of caches: another name for each change that gives other tokens."""

    @abc.abstractmethod
    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        """The (start, end) of the tokens of each sentence that has any, in characters, ends exclusive.

        They are in order and do not overlap.
        """

    def tokenize(self, text: str) -> list[list[Token]]:
        """The tokens of each sentence, with their offsets."""
        return [[Token(text[start:end], start, end) for start, end in sentence] for sentence in self.spans(text)]

    def words(self, text: str) -> list[Token]:
        """The tokens of all sentences, with their offsets."""
        return [token for sentence in self.tokenize(text) for token in sentence]

    def strings(self, text: str) -> Iterator[list[str]]:
        """The tokens of each sentence, one sentence at a time."""
        for sentence in self.spans(text):
            yield [text[start:end] for start, end in sentence]


class TreebankTokenizer(Tokenizer):
    """English text, as `tokenization` splits it; marks that nobody sees are white space."""

    @property
    def version(self) -> str:
        return f"{tokenization.VERSION}, unseen marks are spaces"

    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        return tokenization.token_spans(_without_unseen(text))


class WhitespaceTokenizer(Tokenizer):
    """Text that is tokenized: a line is a sentence, with white space between its tokens."""

    version = "whitespace 1"
    _LINE_BREAK = re.compile("\n")
    _TOKEN = re.compile(r"\S+")

    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        for start, end in _pieces(text, self._LINE_BREAK):
            if tokens := [match.span() for match in self._TOKEN.finditer(text, start, end)]:
                yield tokens

    def strings(self, text: str) -> Iterator[list[str]]:
        yield from filter(None, map(str.split, text.split("\n")))  # corpora are large, and this is faster


class UnicodeTokenizer(Tokenizer):
    """Text in any language: words by Unicode's word boundaries, each Chinese character and each mark a token.

    Marks that nobody sees are white space.

    Source: Unicode Standard Annex #29, "Unicode Text Segmentation", as the package `regex` implements it.
    """

    version = "unicode 2"

    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        text = _without_unseen(text)
        for start, end in _pieces(text, _SENTENCE_END, keep_end=True):
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
        for start, end in _pieces(text, _SENTENCE_END, keep_end=True):
            found = (match.span() for match in self._token.finditer(text, start, end))
            if tokens := [(one, other) for one, other in found if one < other]:
                yield tokens


TREEBANK = TreebankTokenizer()


def _without_unseen(text: str) -> str:
    """A text of the same length with spaces for the marks that nobody sees."""
    return text if text.isascii() else _UNSEEN.sub(" ", text)


def _pieces(text: str, separator: re.Pattern[str], *, keep_end: bool = False) -> Iterator[tuple[int, int]]:
    """The (start, end) of what lies between separators; with `keep_end`, a separator belongs to what precedes it."""
    start = 0
    for match in separator.finditer(text):
        yield start, match.end() if keep_end else match.start()
        start = match.end()
    yield start, len(text)
