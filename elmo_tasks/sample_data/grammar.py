"""A small context-free grammar that generates tokens with parts of speech and labelled spans.

The file `grammars/TASK.txt` lists the alternatives of each symbol, separated by `|` or line ends:

    symbol: alternative | alternative

An alternative is a text of items, separated by spaces:

    word/POS     a token with its part of speech
    <symbol>     one of the symbol's alternatives, drawn at random
    <@name>      a token drawn from a list that is passed in
    (LABEL ... ) the tokens in between are a span with this label; `[ ]` and `{ }` make spans of other kinds
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from elmo_tasks.text.tag_schemes import Span

Grammar = Mapping[str, Sequence[str]]

_SYMBOL = re.compile(r"<@([^<>]+)>")


@dataclasses.dataclass
class MarkedSpan:
    """A span of tokens in brackets. The end is inclusive."""

    bracket: str
    label: str
    start: int
    end: int = 0
    inner: list[MarkedSpan] = dataclasses.field(default_factory=list)  # the spans directly in this one


@dataclasses.dataclass
class MarkedSentence:
    """Tokens with their parts of speech, and all spans in the order of their ends."""

    tokens: list[str] = dataclasses.field(default_factory=list)
    parts_of_speech: list[str] = dataclasses.field(default_factory=list)
    spans: list[MarkedSpan] = dataclasses.field(default_factory=list)

    def spans_in(self, bracket: str) -> list[Span]:
        """The spans that this opening bracket begins."""
        return [Span(span.label, span.start, span.end) for span in self.spans if span.bracket == bracket]


def load_grammar(task: str) -> Grammar:
    """The grammar of a task."""
    return parse_grammar((Path(__file__).parent / "grammars" / f"{task}.txt").read_text(encoding="utf-8"))


def parse_grammar(text: str) -> Grammar:
    """A grammar from a text. Lines that begin with `#` are comments."""
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip()
    rules = (rule.partition(":") for rule in re.split(r"\n(?=\S)", text))
    return {symbol: [each.strip() for each in re.split(r"[|\n]", right) if each.strip()] for symbol, _, right in rules}


def write_sentence(
    grammar: Grammar, symbol: str, names: Mapping[str, Sequence[str]], generator: random.Random
) -> MarkedSentence:
    """Draws a sentence from the grammar.

    Arguments:
        grammar: the alternatives of each symbol.
        symbol: the symbol to start with.
        names: the lists for `<@...>`.
        generator: the random number generator.
    """
    sentence = MarkedSentence()
    opened: list[MarkedSpan] = []
    for item in _expand(grammar, symbol, names, generator):
        if item[0] in "([{":
            opened.append(MarkedSpan(item[0], item[1:], len(sentence.tokens)))
        elif item in (")", "]", "}"):
            span = opened.pop()
            span.end = len(sentence.tokens) - 1
            sentence.spans.append(span)
            if opened:
                opened[-1].inner.append(span)
        else:
            token, _, part_of_speech = item.rpartition("/")
            sentence.tokens.append(token)
            sentence.parts_of_speech.append(part_of_speech)
    sentence.tokens[0] = sentence.tokens[0][:1].upper() + sentence.tokens[0][1:]
    return sentence


def _expand(
    grammar: Grammar, symbol: str, names: Mapping[str, Sequence[str]], generator: random.Random
) -> Iterator[str]:
    """The items of a symbol, with all symbols in them replaced by drawn alternatives."""
    for item in generator.choice(grammar[symbol]).split():
        if item.startswith("<") and item.endswith(">") and not item.startswith("<@"):
            yield from _expand(grammar, item[1:-1], names, generator)
        else:
            yield _SYMBOL.sub(lambda match: generator.choice(names[match[1]]), item)


def conll_2012_rows(
    document: str,
    sentence: MarkedSentence,
    columns: Sequence[Sequence[str]],
    speaker: str = "-",
    lemmas: Mapping[int, tuple[str, str]] | None = None,
) -> Iterator[str]:
    """The rows of a sentence in CoNLL-2012. Its spans in `[ ]` are entities; what comes after them is in `columns`.

    Arguments:
        lemmas: for each predicate's token its lemma and sense.
    """
    length = len(sentence.tokens)
    parse = bracket_column([Span("TOP", 0, length - 1)], length)
    entities = bracket_column(sentence.spans_in("["), length)
    for index, (token, part_of_speech) in enumerate(zip(sentence.tokens, sentence.parts_of_speech, strict=True)):
        lemma = (lemmas or {}).get(index, ("-", "-"))
        fields = [document, "0", str(index), token, part_of_speech, parse[index], *lemma, "-", speaker, entities[index]]
        yield "   ".join([*fields, *(column[index] for column in columns)])
    yield ""


def bracket_column(spans: Sequence[Span], length: int) -> list[str]:
    """The cells of a column that marks spans with parentheses, one cell per token."""
    begins = {start: f"({label}" for label, start, _ in spans}
    ends = {span.end for span in spans}
    return [f"{begins.get(index, '')}*{')' if index in ends else ''}" for index in range(length)]
