"""A small context-free grammar that generates tokens with parts of speech, chunks and entities.

A grammar lists the alternatives of each symbol. An alternative is a text of items, separated by spaces:

    word/POS     a token with its part of speech
    <symbol>     one of the symbol's alternatives, drawn at random
    <@name>      a token drawn from a list that is passed in
    [NP ... ]    the tokens in between are a chunk
    {LOC ... }   the tokens in between are an entity
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator, Mapping, Sequence

from elmo_tasks.text.tag_schemes import Span

Grammar = Mapping[str, Sequence[str]]

_SYMBOL = re.compile(r"<([^<>]+)>")


@dataclasses.dataclass
class AnnotatedSentence:
    """Tokens with their parts of speech, and the spans of chunks and entities. Ends are inclusive."""

    tokens: list[str] = dataclasses.field(default_factory=list)
    parts_of_speech: list[str] = dataclasses.field(default_factory=list)
    chunks: list[Span] = dataclasses.field(default_factory=list)
    entities: list[Span] = dataclasses.field(default_factory=list)


def write_sentence(
    grammar: Grammar, symbol: str, names: Mapping[str, Sequence[str]], generator: random.Random
) -> AnnotatedSentence:
    """Draws a sentence from the grammar.

    Arguments:
        grammar: the alternatives of each symbol.
        symbol: the symbol to start with.
        names: the lists for `<@...>`.
        generator: the random number generator.
    """
    sentence = AnnotatedSentence()
    chunk = entity = ("", 0)  # label and start of the open chunk or entity
    for item in expand(grammar, symbol, names, generator):
        if item[0] == "[":
            chunk = (item[1:], len(sentence.tokens))
        elif item[0] == "{":
            entity = (item[1:], len(sentence.tokens))
        elif item == "]":
            sentence.chunks.append(Span(*chunk, len(sentence.tokens) - 1))
        elif item == "}":
            sentence.entities.append(Span(*entity, len(sentence.tokens) - 1))
        else:
            token, _, part_of_speech = item.rpartition("/")
            sentence.tokens.append(token)
            sentence.parts_of_speech.append(part_of_speech)
    sentence.tokens[0] = sentence.tokens[0][:1].upper() + sentence.tokens[0][1:]
    return sentence


def expand(
    grammar: Grammar, symbol: str, names: Mapping[str, Sequence[str]], generator: random.Random
) -> Iterator[str]:
    """The items of a symbol, with all symbols in them replaced by drawn alternatives."""
    for item in generator.choice(grammar[symbol]).split():
        if item.startswith("<") and item.endswith(">") and not item.startswith("<@"):
            yield from expand(grammar, item[1:-1], names, generator)
        else:
            yield _SYMBOL.sub(lambda match: generator.choice(names[match[1][1:]]), item)
