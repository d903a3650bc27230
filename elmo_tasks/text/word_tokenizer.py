"""NLTK's Treebank word tokenizer, several times as fast and with the same results.

It applies about thirty regular expressions to every sentence, most of which find nothing. Here a search for a few plain
strings, which is much faster, first shows whether an expression can find anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nltk.tokenize.destructive import NLTKWordTokenizer

# An expression, and strings of which a text must contain at least one to be changed. Expressions that are not listed,
# for example those of another release of NLTK, are always applied.
_NEEDS: dict[str, Iterable[str]] = {
    "([«“‘„]|[`]+)": "«“‘„`",  # noqa: RUF001
    r"^\"": '"',
    "(``)": ["``"],
    r"([ \(\[{<])(\"|\'{2})": ['"', "''"],
    r"(?i)(?<!\w)(\')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)": "'",
    r"([:,])([^\d])": ":,",
    "([:,])$": ":,",
    r"\.{2,}": [".."],
    "[;@#$%&]": ";@#$%&",
    r"[\u2012-\u2015]": "\u2012\u2013\u2014\u2015",
    "[?!]": "?!",
    "([^'])' ": ["' "],
    "[*]": "*",
    r"[\]\[\(\)\{\}\<\>]": "[](){}<>",
    "--": ["--"],
    "([»”’])": "»”’",  # noqa: RUF001
    "''": ["''"],
    '"': '"',
    "([^' ])('[sS]|'[mM]|'[dD]|') ": "'",
    "([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ": "'",
    # These ignore case: the strings are searched for in the text in lower case.
    r"(?i)\b(can)(?#X)(not)\b": ["cannot"],
    r"(?i)\b(d)(?#X)('ye)\b": ["'ye"],
    r"(?i)\b(gim)(?#X)(me)\b": ["mme"],
    r"(?i)\b(gon)(?#X)(na)\b": ["gonna"],
    r"(?i)\b(got)(?#X)(ta)\b": ["gotta"],
    r"(?i)\b(lem)(?#X)(me)\b": ["lemme"],
    r"(?i)\b(more)(?#X)('n)\b": ["more'n"],
    r"(?i)\b(wan)(?#X)(na)(?=\s)": ["wanna"],
    r"(?i) ('t)(?#X)(is)\b": ["'t"],
    r"(?i) ('t)(?#X)(was)\b": ["'t"],
}


class _Rule:
    """An expression that is applied if the text contains what it needs."""

    def __init__(self, expression: Any) -> None:
        self._expression = expression
        self._needs = tuple(_NEEDS.get(expression.pattern, [""]))  # the empty string is in every text
        self._ignores_case = expression.pattern.startswith("(?i)")

    def sub(self, replacement: str, text: str) -> str:
        searched = text.lower() if self._ignores_case else text
        for need in self._needs:
            if need in searched:
                return self._expression.sub(replacement, text)
        return text


class _SingleSpaces:
    """Replaces several spaces by one, as NLTK's slowest expression does; the text has no other white space."""

    def sub(self, replacement: str, text: str) -> str:
        while "  " in text:
            text = text.replace("  ", " ")
        return text


def _rules(expressions: list[tuple[Any, str]]) -> list[tuple[Any, str]]:
    return [
        (_SingleSpaces() if expression.pattern == r"\s+" else _Rule(expression), replacement)
        for expression, replacement in expressions
    ]


class WordTokenizer(NLTKWordTokenizer):
    """Returns what NLTK's tokenizer returns, for text whose only white space is spaces."""

    STARTING_QUOTES = _rules(NLTKWordTokenizer.STARTING_QUOTES)
    PUNCTUATION = _rules(NLTKWordTokenizer.PUNCTUATION)
    (PARENS_BRACKETS,) = _rules([NLTKWordTokenizer.PARENS_BRACKETS])
    (DOUBLE_DASHES,) = _rules([NLTKWordTokenizer.DOUBLE_DASHES])
    ENDING_QUOTES = _rules(NLTKWordTokenizer.ENDING_QUOTES)
    CONTRACTIONS2 = [_Rule(expression) for expression in NLTKWordTokenizer.CONTRACTIONS2]  # noqa: RUF012
    CONTRACTIONS3 = [_Rule(expression) for expression in NLTKWordTokenizer.CONTRACTIONS3]  # noqa: RUF012
