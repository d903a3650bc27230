"""Which tokenizer splits raw text: a name, or a part of a config."""

from __future__ import annotations

from typing import ClassVar, Literal

from elmo_tasks.config import Part, parse_part
from elmo_tasks.text.tokenizers import Tokenizer, TreebankTokenizer, WhitespaceTokenizer


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
