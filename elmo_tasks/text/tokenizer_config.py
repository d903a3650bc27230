"""Which tokenizer splits raw text: a name, or a part of a config."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import pydantic
from pydantic import Field

from elmo_tasks.config import Part, parse_part
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tokenizers import (
    RegexTokenizer,
    Tokenizer,
    TreebankTokenizer,
    UnicodeTokenizer,
    WhitespaceTokenizer,
)


class TokenizerConfig(Part):
    """The kind of part that splits raw text into sentences and tokens."""

    default_type: ClassVar[str | None] = "treebank"

    def build(self) -> Tokenizer:
        """The tokenizer with these settings."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its tokenizer")


class TreebankConfig(TokenizerConfig):
    """English: the words of the Penn Treebank, as they are written."""

    type: Literal["treebank"] = "treebank"

    def build(self) -> Tokenizer:
        return TreebankTokenizer()


class WhitespaceConfig(TokenizerConfig):
    """Tokenized text: a sentence on each line, with white space between its tokens."""

    type: Literal["whitespace"] = "whitespace"

    def build(self) -> Tokenizer:
        return WhitespaceTokenizer()


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


TokenizerName = Literal["treebank", "whitespace", "unicode"]
TokenizerChoice = TokenizerName | TokenizerConfig
"""What a config says: the name of a tokenizer without settings, or an object with its `type`."""


def build_tokenizer(choice: TokenizerChoice) -> Tokenizer:
    """The tokenizer that a config or a command chooses."""
    config = TokenizerConfig.model_validate({"type": choice}) if isinstance(choice, str) else choice
    return config.build()


def parse_tokenizer(text: str) -> Tokenizer:
    """The tokenizer of a command's argument: a name, or a JSON object with a `type`.

    Raises:
        ElmoTasksError: there is no such tokenizer, or its settings are wrong.
    """
    return parse_part(TokenizerConfig, text, "tokenizer", '{"type": "regex", "pattern": "..."}').build()
