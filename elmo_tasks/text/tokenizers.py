"""Raw text to sentences and tokens with exact character offsets, in several ways.

Worker processes import this module: it imports neither torch nor pydantic. `tokenizer_config` has the settings.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Iterator

from elmo_tasks.text import tokenization
from elmo_tasks.text.tokenization import Token


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
        return tokenization.VERSION

    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        return tokenization.rule_tokenizer().spans(text)


class WhitespaceTokenizer(Tokenizer):
    """Text that is tokenized: a line is a sentence, with white space between its tokens."""

    version = "whitespace 1"
    _LINE = re.compile(r"[^\n]+")
    _TOKEN = re.compile(r"\S+")

    def spans(self, text: str) -> Iterator[list[tuple[int, int]]]:
        for line in self._LINE.finditer(text):
            if tokens := [match.span() for match in self._TOKEN.finditer(text, *line.span())]:
                yield tokens

    def strings(self, text: str) -> Iterator[list[str]]:
        yield from filter(None, map(str.split, text.split("\n")))  # corpora are large, and this is faster


TREEBANK = TreebankTokenizer()
