"""Where the sentences of English text end: rules for marks, abbreviations, initials, quotes and brackets.

The rules for abbreviations and initials are those of Punkt (Kiss and Strunk 2006, "Unsupervised Multilingual Sentence
Boundary Detection", section 4), with a list of our own instead of statistics. Unlike in NLTK's Punkt, quotes and
brackets do not hide the words around them. `rule_tokenizer` applies these rules.
"""

from __future__ import annotations

_LISTS = {
    # Words that end with a period within a sentence, without that period. None of them is also a common word, since it
    # would join sentences that end with it. Single letters are initials.
    "abbreviations": """
        mr mrs ms mx messrs mmes dr drs prof profs rev revd hon pres gov lt lt-gov sen sens rep reps amb atty supt insp
        det gen maj col capt cpt cmdr cdr comdr sgt cpl pvt pfc adm brig lieut fr sr sra srta bro msgr mgr mons st ste
        mt ft jr esq ph.d m.d b.a m.a b.sc m.sc d.phil
        jan feb apr jun jul aug sep sept oct nov dec mon tue tues thu thur thurs fri
        inc corp co cos ltd plc llc bros mfg intl int'l natl nat'l dept div assn assoc univ inst mgmt govt gov't
        etc vs v.s e.g i.e eg ie cf ca approx al viz ibid op cit n.b a.k.a a.m p.m a.d b.c b.c.e c.e resp incl excl est
        u.s u.s.a u.k u.n e.u u.s.s.r d.c l.a n.y n.j n.c s.c n.d s.d w.va r.i n.h n.m p.o r.s.v.p p.s
        ala ariz ark calif colo conn dak del fla ga ind kan kans ky md mich minn mo mont neb nebr nev okla ont pa penn
        que tenn tex va vt wis wisc wyo
        ave blvd rd hwy sq bldg ext tel
        figs eq eqs sect pt pp vol vols eds repr chap nos
        lb lbs oz hr hrs min mins sec secs yd yds mph km kg cm mm
        """,
    # Abbreviations that are also words: they do not end the sentence if a number follows.
    "before_numbers": "no nos p pp fig figs mar sec art ch vol sept",
    # Words that begin a sentence if they come capitalized after an abbreviation, and do not continue a name.
    "starters": """
        the this that these those there here it its he she they we you his her their our my i but and however although
        though while when where what who why how if in on at by for from with after before since during as also another
        many most some such both each every no not yet so then thus meanwhile moreover nevertheless instead later now
        still
        """,
    # After these the sentence goes on with any word.
    "never_last": "vs v.s v e.g i.e cf mr mrs ms dr prof rev gen sen rep gov capt col lt sgt",
}
LISTS = {name: words.split() for name, words in _LISTS.items()}

STRAIGHT_QUOTES = dict(zip("“”„«»\u2018\u2019", '"""""\'\'', strict=True))  # as patterns see them
LONGEST_WORD = 40  # characters before a mark that are looked at

# A bracket or quote between spaces closes, as in tokenized text.
_CLOSING = r"""(?:["')\]}*]|\s["')\]}](?=\s|$))"""
PATTERNS = {
    # A place where a sentence may end: after marks and what closes, before white space and what opens, and the next
    # word. White space may be missing: `so.[3]`, `so.(Then`, and before the notes and pages of an encyclopaedia:
    # `so.[citation needed]`, `so.:33`. A group that only looks ahead, and then \1 or \2, keep what was found first.
    "place": r"(?<![.?!…])"  # only at the first of several marks, so that the search takes linear time
    rf"(?=([.?!…]+(?:(?<=[?!])\s+[?!]+(?=\s|{_CLOSING}))*))\1"
    rf"""(?:(?=["(\[{{][^\W_]|:\d[\d:\u2013-]*(?:\s|$))|(?=({_CLOSING}*))\2\s+)(["'`(\[{{]*)(\w*)""",
    "last_word": r"[\w.'`/°-]+$",
    "initials": r"[^\W\d_](?:\.[^\W\d_])*",
    "address": r"https?://|www\.",
    # After the end of a quote, and after its beginning; the capital is checked.
    "speaker": r"(?:I|[^\W\d_]\w+) "
    r"(?:said|says?|asked|asks?|cried|called|shouted|replied|answered|whispered|yelled|screamed)\b",
    "speech": r"""["'][^\W\d_][^"]{0,400}[.?!…]["']""",
}
