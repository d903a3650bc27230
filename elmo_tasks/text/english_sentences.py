"""Where the sentences of English text end: rules for marks, abbreviations, initials, quotes and brackets.

The rules for abbreviations and initials are those of Punkt (Kiss and Strunk 2006, "Unsupervised Multilingual Sentence
Boundary Detection", section 4), with a list of our own instead of statistics. Unlike in NLTK's Punkt, quotes and
brackets do not hide the words around them.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that end with a period within a sentence, without that period. None of them is also a common word, since it
# would join sentences that end with it. Single letters are initials.
_ABBREVIATIONS = _words(
    """
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
)

# Abbreviations that are also words: they do not end the sentence if a number follows.
_BEFORE_NUMBERS = _words("no nos p pp fig figs mar sec art ch vol sept")

# Words that begin a sentence if they come capitalized after an abbreviation, and do not continue a name.
_STARTERS = _words(
    """
    the this that these those there here it its he she they we you his her their our my i but and however although
    though while when where what who why how if in on at by for from with after before since during as also another
    many most some such both each every no not yet so then thus meanwhile moreover nevertheless instead later now still
    """
)

# After these the sentence goes on with any word.
_NEVER_LAST = _words("vs v.s v e.g i.e cf mr mrs ms dr prof rev gen sen rep gov capt col lt sgt")

# A place where a sentence may end: after marks and what closes, before white space and what opens. Quotes are straight.
# A bracket or quote between spaces closes, as in tokenized text. White space may be missing: `so.[3]`, `so.(Then`, and
# before the notes and pages of an encyclopaedia: `so.[citation needed]`, `so.:33`.
_CLOSING = r"""(?: ["')\]}*] | \s["')\]}](?=\s|$) )"""
_PLACE = regex.compile(
    rf"""
    (?<! [.?!…] )  # only at the first of several marks, so that the search takes linear time
    (?P<marks> [.?!…]++ (?: (?<=[?!]) \s++ [?!]++ (?= \s | {_CLOSING} ) )*+ )
    (?: (?= ["(\[{{] [\p{{Lu}}\d] | \[ \p{{L}} | :\d[\d:\u2013-]*+ (?: \s | $ ) ) | (?P<closing> {_CLOSING}*+ ) \s++ )
    (?P<opening> ["'`(\[{{]*+ )
    (?P<next> \w*+ | . )
    """,
    regex.VERBOSE,
)
_LAST_WORD = regex.compile(r"[\w.'`/°-]++$")
_LONGEST_WORD = 40  # characters before a mark that are looked at
_INITIALS = regex.compile(r"\p{L}(?:\.\p{L})*+")
_ADDRESS = regex.compile(r"https?://|www\.")
_SPEAKER = regex.compile(
    r"(?:I|\p{Lu}\w+) (?:said|says?|asked|asks?|cried|called|shouted|replied|answered|whispered|yelled|screamed)\b"
)
_SPEECH = regex.compile(r"""["']\p{Lu}[^"]{0,400}[.?!…]["']""")

_STRAIGHT_QUOTES = str.maketrans("“”„«»\u2018\u2019", '"""""\'\'')


def sentence_starts(text: str) -> Iterator[int]:
    """Where the second and every later sentence of a text begins, in characters."""
    text = text.translate(_STRAIGHT_QUOTES)
    for place in _PLACE.finditer(text):
        if _is_border(text, place):
            yield place.start("opening")


def word_before(text: str, mark: int) -> str:
    """The word that ends where a mark begins, in lower case; perhaps empty."""
    word = _LAST_WORD.search(text, max(0, mark - _LONGEST_WORD), mark)
    return word.group().lower() if word else ""


def is_abbreviation(word: str) -> bool:
    """Whether a word in lower case keeps a period after it: an abbreviation, an initial, or several."""
    return word.rpartition("-")[2] in _ABBREVIATIONS or word in _ABBREVIATIONS or bool(_INITIALS.fullmatch(word))


def _is_border(text: str, place: regex.Match[str]) -> bool:
    """Whether a sentence ends at a match of `_PLACE`."""
    marks, closing, follower = place["marks"], (place["closing"] or "").strip(), place["next"]
    goes_on = follower[:1].islower() and not _ADDRESS.match(text, place.start("next"))
    is_reported = marks != "." and closing[-1:] in {'"', "'"} and _SPEAKER.match(text, place.start("opening"))
    if is_reported or (closing and goes_on) or follower in {",", ";", ":"}:
        return False
    if "?" in marks or "!" in marks:
        return True
    starts = follower[:1].isupper() and follower.lower() in _STARTERS
    if marks != ".":
        return starts or bool(closing)
    word = word_before(text, place.start())
    if word in _NEVER_LAST or (word in _BEFORE_NUMBERS and follower[:1].isdigit()):
        return False
    if is_abbreviation(word):
        return starts or bool(_SPEECH.match(text, place.start("opening")))
    return not (goes_on and word.isdigit() and len(word) < 3)  # an ordinal, or the number of a point
