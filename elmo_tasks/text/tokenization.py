"""Raw English text to sentences and Penn-Treebank-style tokens, with exact character offsets.

`english_sentences` has the rules for sentences; those for words are here. Source: R. MacIntyre's `tokenizer.sed` of
1995, with the additions of NLTK's `NLTKWordTokenizer`: other quotes and dashes, apostrophes before words, and periods
before closing marks. Departures: every token is kept as it is written (a double quote stays `"`, a bracket stays `(`),
names such as AT&T, e-mail addresses and URLs stay whole, and an acronym that ends its sentence keeps its period
(`U.S.`) instead of lending it to the sentence.

All functions are safe to call from several threads, and take time proportional to the length of the text.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from elmo_tasks.text import english_sentences
from elmo_tasks.text.rule_tokenizer import RuleTokenizer

# Names the tokenizer in the keys of caches. Raise its number when a change here or in `english_sentences` gives other
# tokens.
VERSION = "6"

# Marks that nobody sees: of the byte order, of the direction, and spaces and joiners without a width. They are white
# space here. Those within words stay: the soft hyphen, and the joiners of Persian words and of emoji.
UNSEEN = "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
_APART = r" \g<0> "
_LETTER = r"[\w\u0300-\u036f]"

RULES: dict[str, Any] = {
    "window": 20_000,  # text is read in windows of this many characters, more than any sentence of prose has
    "after_a_border": 500,  # characters, of which rules look at fewer
    "longest_word": english_sentences.LONGEST_WORD,
    "straight_quotes": english_sentences.STRAIGHT_QUOTES,
    "lists": english_sentences.LISTS,
    "patterns": {
        **english_sentences.PATTERNS,
        "unseen": UNSEEN,
        "blank_line": r"\n[^\S\n]*\n",
        "apostrophe": r"(?<=[^\W_])\u2019(?=[^\W\d_])",
        # What no rule splits.
        "unsplit": r"""\b(?:https?://|ftp://|www\.)[^\s<>"“”]*[^\s<>"“”.,;:!?)\]}'\u2019»]"""  # without marks after it
        r"|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
        r"|(?<=\w)&(?=\w)"  # AT&T
        r"|(?<![\w.])[^\W\d_]{1,2}\.(?:[^\W\d_]\.)+",  # U.S., p.m., Ph.D.
        # The period of a sentence within another: `"Wow." and left`. The rules only find the last one.
        "inner_period": r"""(?<=\w)\.(?=["”'\u2019)\]}*]+(?:[\s,;:…\u2012-\u2015-]|$))""",
    },
    # The rules for words, in their order: each puts spaces around what it finds. A word has spaces around it, or the
    # sentence's ends. A rule sees the spaces of those before it, and what it has found cannot be part of another find.
    "words": (
        (r"``|[`«“\u2018„]", _APART),
        (r"(?<=[ (\[{<])''", " `` "),  # opens: no later rule takes it for an apostrophe
        # Opens, too, unless it is that of a contraction. Combining accents are parts of words.
        (rf"(?i)(?<!{_LETTER})'(?!(?:re|ve|ll|[mtsdn])(?!{_LETTER}))(?={_LETTER})", "' "),
        (r"""(?<=[^.])\.(?=[\])}>"'»”\u2019 ]*$)""", _APART),  # the sentence's period
        (r"([:,])(\D|$)", r" \1 \2"),  # but 3:30 and 1,000
        (r"\.{2,}|[;@#$€£¥%&…\u2012-\u2015?!]", _APART),
        (r"(?<=[^'])' ", " ' "),
        (r"--|[\]*\[(){}<>]", _APART),
        (r"""''|["»”\u2019]""", _APART),
        (r"(?<=[^' ])'[sSmMdD]?(?= |$)", r" \g<0>"),
        (r"(?<=[^' ])(?:'(?:ll|LL|re|RE|ve|VE)|n't|N'T)(?= |$)", r" \g<0>"),
        (
            r"(?i)\b(can(?=not)|d(?='ye)|gim(?=me)|gon(?=na)|got(?=ta)|lem(?=me)|more(?='n)|wan(?=na(?: |$)))"
            r"(not|'ye|me|na|ta|'n)\b",
            r" \1 \2 ",
        ),
        (r"(?i)(?<![^ ])('t)(is)\b", r" \1 \2 "),  # only after a word of the rule before, since ' opens
        (r"(?i)(?<![^ ])('t)(was)\b", r" \1 \2 "),
    ),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A token as it is written: `text` is the original text's `[start:end]`, in characters; `end` is exclusive."""

    text: str
    start: int
    end: int


@functools.cache
def rule_tokenizer() -> RuleTokenizer:
    """What applies the rules."""
    return RuleTokenizer(RULES)
