"""Raw English text to sentences and Penn-Treebank-style tokens, with exact character offsets.

NLTK's Punkt finds sentences, with our own list of abbreviations; NLTK's Treebank tokenizer finds words. Both only need
rules, so nothing has to be downloaded. Departures from the Treebank's conventions: every token is kept as it is
written (a double quote stays `"`, a bracket stays `(`), names such as AT&T, e-mail addresses and URLs stay whole, and
an acronym that ends its sentence keeps its period (`U.S.`) instead of lending it to the sentence.

All functions are safe to call from several threads, and take time proportional to the length of the text.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    from elmo_tasks.text.word_tokenizer import WordTokenizer

# Names the tokenizer in the keys of caches. Raise its number when a change here or in `word_tokenizer` gives other
# tokens.
VERSION = f"2, nltk {importlib.metadata.version('nltk')}"

# Words that end with a period within a sentence, without that period. None of them is also a common word, since it
# would join sentences that end with it. Punkt knows single letters as initials.
_ABBREVIATIONS = """
    mr mrs ms mx messrs mmes dr drs prof profs rev revd hon pres gov lt lt-gov sen sens rep reps amb atty supt insp det
    gen maj col capt cpt cmdr cdr comdr sgt cpl pvt pfc adm brig lieut fr sr sra srta bro msgr mgr mons st ste mt ft
    jr esq ph.d m.d b.a m.a b.sc m.sc d.phil
    jan feb apr jun jul aug sep sept oct nov dec mon tue tues thu thur thurs fri
    inc corp co cos ltd plc llc bros mfg intl int'l natl nat'l dept div assn assoc univ inst mgmt govt gov't
    etc vs v.s e.g i.e eg ie cf ca approx al viz ibid op cit n.b a.k.a a.m p.m a.d b.c b.c.e c.e resp incl excl est
    u.s u.s.a u.k u.n e.u u.s.s.r d.c l.a n.y n.j n.c s.c n.d s.d w.va r.i n.h n.m p.o r.s.v.p p.s
    ala ariz ark calif colo conn dak del fla ga ind kan kans ky md mich minn mo mont neb nebr nev okla ont pa penn que
    tenn tex va vt wis wisc wyo
    ave blvd rd hwy sq bldg ext tel
    figs eq eqs sect pt pp vol vols eds repr chap nos
    lb lbs oz hr hrs min mins sec secs yd yds mph km kg cm mm
"""

# Abbreviations that are also words: they do not end the sentence if a number follows.
_ABBREVIATIONS_BEFORE_NUMBERS = "no nos p pp fig figs mar sec art ch vol sept"

# Words that begin a sentence if they come capitalized after an abbreviation, and do not continue a name.
_SENTENCE_STARTERS = """
    the this that these those there here it its he she they we you his her their our my i but and however although
    though while when where what who why how if in on at by for from with after before since during as also another
    many most some such both each every no not yet so then thus meanwhile moreover nevertheless instead later now still
"""

# After these the sentence goes on with any word.
_NEVER_LAST = "vs v.s v e.g i.e cf mr mrs ms dr prof rev gen sen rep gov capt col lt sgt"

# Every release of Punkt knows straight quotes.
_STRAIGHT_QUOTES = str.maketrans("“”„\u2018\u2019", '"""\'\'')

# Characters that the word tokenizer would rewrite, leave attached or split wrongly, and better ones instead of them.
# Each is replaced by exactly one character, so that the lengths of the tokens are those of the original text.
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

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")

# Text is read in windows of this many characters, more than any sentence of prose has.
_WINDOW = 20_000


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
def _sentence_tokenizer() -> PunktSentenceTokenizer:
    # Imported here, as NLTK imports scikit-learn, and most commands read no raw text.
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    starters = _SENTENCE_STARTERS.split()
    parameters.abbrev_types.update(_ABBREVIATIONS.split())
    parameters.sent_starters.update(starters)
    parameters.collocations.update((word, "##number##") for word in _ABBREVIATIONS_BEFORE_NUMBERS.split())
    parameters.collocations.update(itertools.product(_NEVER_LAST.split(), starters))
    # Punkt looks words up here. In its own defaultdict every look-up adds an entry: memory would grow, and several
    # threads would change the dictionary. Look-ups do not change a Counter.
    parameters.ortho_context = Counter()
    return PunktSentenceTokenizer(parameters)


@functools.cache
def _word_tokenizer() -> WordTokenizer:
    from elmo_tasks.text.word_tokenizer import WordTokenizer

    return WordTokenizer()


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The (start, end) of the sentences of text[start:end]; each ends where the next begins."""
    while start < end:
        stop = min(end, start + _WINDOW)
        if stop < end and (space := text.rfind(" ", start + 1, stop)) > 0:
            stop = space
        window = text[start:stop].translate(_STRAIGHT_QUOTES)
        borders = [start + border for border, _ in _sentence_tokenizer().span_tokenize(window)][1:]
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
    spans = []
    for piece in _word_tokenizer().tokenize(" ".join(stand_in.split())):
        while text[start].isspace():
            start += 1
        stop = start + len(piece)
        spans.append((start, stop))
        start = stop
    return spans
