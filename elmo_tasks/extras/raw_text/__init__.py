"""Raw text for a biLM: the options of the commands, the lines, the tokenizer, and a token that is named."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.text import STANDARD_INPUT, ByteLines, decode_lines, read_lines
from elmo_tasks.text.prose import noting_no_text, prose_lines
from elmo_tasks.text.tokenizers import TREEBANK, Tokenizer

BILM_TOKENIZER = "the one that the biLM was trained with, if its folder names it, otherwise treebank"
TOKENIZED_ADVICE = "--tokenized reads any file, a sentence of tokens on each line"


def add_bilm(parser: argparse.ArgumentParser) -> None:
    help = "the folder of the biLM, its zip archive, hub:ORG/NAME, or an address with #sha256=..."
    parser.add_argument("--bilm", default="default", metavar="DIR", help=f"{help} (default: the biLM in the package)")


def add_bilm_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that reads raw text with a biLM."""
    add_bilm(parser)
    options.add_tokenizer_arguments(parser, BILM_TOKENIZER)
    options.add_include_package(parser)
    options.add_device(parser, "auto")


def bilm_tokenizer(arguments: argparse.Namespace, folder: Path) -> Tokenizer:
    """The tokenizer that the options name, or that of the biLM in the folder."""
    from elmo_tasks.text.tokenizer_config import parse_tokenizer

    name = options.chosen_tokenizer(arguments)
    return parse_tokenizer(name) if name else tokenizer_of_bilm(folder)


def tokenizer_of_bilm(folder: str | Path) -> Tokenizer:
    """The tokenizer of the text that a biLM was trained on, if its folder is that of a pretraining; else `treebank`."""
    from elmo_tasks.text.tokenizer_config import parse_tokenizer

    path = Path(folder) / "config.json"
    try:
        corpus = read_json(path, dict[str, Any], "the config of a pretraining")["corpus"]
        choice = corpus.get("dataset_reader", corpus)["tokenizer"]
    except (ElmoTasksError, KeyError, TypeError, AttributeError):
        return TREEBANK  # not the folder of a pretraining, or of one before tokenizers could be chosen
    return parse_tokenizer(choice if isinstance(choice, str) else json.dumps(choice))


def raw_lines(
    source: str | Path | ByteLines, *, tokenized: bool = False, advice: str = TOKENIZED_ADVICE
) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file or of standard input; see `prose_lines`. Tokenized lines are not checked."""
    name = source if isinstance(source, (str, Path)) else STANDARD_INPUT
    lines = read_lines(source) if isinstance(source, (str, Path)) else decode_lines(source, name)
    return noting_no_text(lines if tokenized else prose_lines(lines, name, advice), name)


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
