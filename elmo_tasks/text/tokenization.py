"""Raw English text to sentences and Penn-Treebank-style tokens, with exact character offsets.

`english_sentences` finds sentences; NLTK's Treebank tokenizer finds words. Both only need rules, so nothing has to be
downloaded. Departures from the Treebank's conventions: every token is kept as it is written (a double quote stays `"`,
a bracket stays `(`), names such as AT&T, e-mail addresses and URLs stay whole, and an acronym that ends its sentence
keeps its period (`U.S.`) instead of lending it to the sentence.

All functions are safe to call from several threads, and take time proportional to the length of the text.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from elmo_tasks.text.english_sentences import is_abbreviation, sentence_starts, word_before

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer

# Names the tokenizer in the keys of caches. Raise its number when a change here or in `english_sentences` gives other
# tokens.
VERSION = f"5, nltk {importlib.metadata.version('nltk')}"

# Characters that the word tokenizer would rewrite, leave attached or split wrongly, and better ones instead of them.
# Each is replaced by exactly one character, so that the tokens are as long as in the original text.
_WORD_STAND_INS = str.maketrans({'"': "”", "…": "—", "€": "$", "£": "$", "¥": "$"})
_APOSTROPHE = re.compile(r"(?<=[^\W_])\u2019(?=[^\W\d_])")
_UNSPLIT = re.compile(
    r"""
    \b(?:https?://|ftp://|www\.)[^\s<>"“”]*[^\s<>"“”.,;:!?)\]}'\u2019»]      # URLs, without the punctuation after them
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+                          # e-mail addresses
    | (?<=\w)&(?=\w)                                                    # AT&T
    | (?<![\w.])[^\W\d_]{1,2}\.(?:[^\W\d_]\.)+                          # U.S., p.m., Ph.D.
    """,
    re.VERBOSE,
)

# The period of a sentence within another: `"Wow." and left`. The word tokenizer only finds the last one.
_INNER_PERIOD = re.compile(r"""(?<=\w)\.(?=["”'\u2019)\]}*]+(?:[\s,;:\u2012-\u2015-]|$))""")

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")

# Text is read in windows of this many characters, more than any sentence of prose has.
_WINDOW = 20_000
_AFTER_A_BORDER = 500  # characters, of which rules look at fewer


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A token as it is written: `text` is the original text's `[start:end]`, in characters; `end` is exclusive."""

    text: str
    start: int
    end: int


def token_spans(text: str) -> Iterator[list[tuple[int, int]]]:
    """The (start, end) of the tokens of each sentence that has any, in characters, ends exclusive.

    The tokens are in order and do not overlap, and only white space is left out. A blank line ends a sentence, and a
    sentence of more than 20,000 characters is cut.
    """
    borders = [0, *itertools.chain.from_iterable(match.span() for match in _BLANK_LINE.finditer(text)), len(text)]
    for start, end in zip(borders[::2], borders[1::2], strict=True):
        for sentence_start, sentence_end in _sentences(text, start, end):
            if words := _words(text, sentence_start, sentence_end):
                yield words


@functools.cache
def _word_tokenizer() -> NLTKWordTokenizer:
    from nltk.tokenize.destructive import NLTKWordTokenizer  # takes a while to import

    return NLTKWordTokenizer()


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The (start, end) of the sentences of text[start:end]; each ends where the next begins."""
    while start < end:
        stop = min(end, start + _WINDOW)
        if stop < end and (space := text.rfind(" ", start + 1, stop)) > 0:
            stop = space
        found = sentence_starts(text[start : min(end, stop + _AFTER_A_BORDER)])
        borders = [start + border for border in found if start + border < stop]
        if borders and stop < end:
            stop = borders.pop()  # the window's last sentence may go on after it: it begins the next window
        yield from itertools.pairwise([start, *borders, stop])
        start = stop


def _words(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The (start, end) of the tokens of the sentence text[start:end]."""
    # The word tokenizer adds and removes white space and replaces '' by ``, which changes no lengths: its results tell
    # how many characters each token has. It is slow with long runs of white space, so it gets none.
    stand_in = _APOSTROPHE.sub("'", text[start:end].translate(_WORD_STAND_INS))
    stand_in = _UNSPLIT.sub(lambda match: "x" * len(match.group()), stand_in)
    stand_in = _INNER_PERIOD.sub(_apart_from_its_word, stand_in)
    spans = []
    for piece in _word_tokenizer().tokenize(" ".join(stand_in.split())):
        while text[start].isspace():
            start += 1
        stop = start + len(piece)
        spans.append((start, stop))
        start = stop
    return spans


def _apart_from_its_word(period: re.Match[str]) -> str:
    return "." if is_abbreviation(word_before(period.string, period.start())) else " ."
