"""What the labels of the trained models mean, and which of them have the same colour."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

# By the number of their colour in the palette.
_NAMES = (
    {"LOC": "place"},
    {"MISC": "other name, such as a nationality or an event"},
    {"ORG": "organization"},
    {"PER": "person"},
)
# Of the Penn Treebank, with what the English Web Treebank adds.
_PARTS_OF_SPEECH = (
    {"NN": "noun, singular", "NNS": "noun, plural"},
    {"VB": "verb, base form", "VBD": "verb, past tense", "VBG": "verb, -ing form", "VBN": "verb, past participle"}
    | {"VBP": "verb, present", "VBZ": "verb, present, third person singular", "MD": "modal verb"},
    {"JJ": "adjective", "JJR": "adjective, comparative", "JJS": "adjective, superlative"},
    {"NNP": "name, singular", "NNPS": "name, plural"},
    {"DT": "determiner", "PDT": "determiner before another", "WDT": "determiner that asks or refers: which"}
    | {"PRP": "pronoun", "PRP$": "possessive pronoun", "WP": "pronoun that asks or refers: who", "WP$": "whose"}
    | {"EX": "there, as in “there is”"},
    {"RB": "adverb", "RBR": "adverb, comparative", "RBS": "adverb, superlative"}
    | {"WRB": "adverb that asks or refers: where"},
    {"CD": "number", "FW": "foreign word", "UH": "interjection", "SYM": "symbol", "$": "currency", "LS": "list number"}
    | {"ADD": "address on the web", "AFX": "affix", "GW": "part of a word that was split"},
    {"IN": "preposition or subordinating conjunction", "CC": "coordinating conjunction", "TO": "to", "RP": "particle"}
    | {"POS": "possessive ending"},
)
_ROLES = (
    {"ARG0": "agent: who does it"},
    {"ARG1": "patient: whom or what it happens to", "ARG1-DSP": "what is said, as direct speech"},
    {"ARG2": "recipient, instrument or attribute"},
    {"ARG3": "starting point, beneficiary or attribute", "ARG4": "end point", "ARG5": "another argument"}
    | {"ARGA": "who makes the agent do it"},
    {"ARGM-TMP": "time"},
    {"ARGM-LOC": "place", "ARGM-DIR": "direction", "ARGM-GOL": "goal"},
    {"ARGM-MNR": "manner", "ARGM-CAU": "cause", "ARGM-PRP": "purpose", "ARGM-PNC": "purpose", "ARGM-EXT": "extent"}
    | {"ARGM-COM": "in whose company", "ARGM-ADV": "other circumstance", "ARGM-MOD": "modal verb"}
    | {"ARGM-NEG": "negation", "ARGM-DIS": "link to what was said before", "ARGM-ADJ": "adjective"}
    | {"ARGM-LVB": "light verb", "ARGM-PRR": "predicate of a light verb", "ARGM-PRD": "state of a participant"}
    | {"ARGM-REC": "each other", "ARGM-CXN": "construction, such as a comparison"},
    {"V": "predicate"},
)
PUNCTUATION = {
    **{".": "end of a sentence", ",": "comma", ":": "colon, semicolon or dash", "HYPH": "hyphen"},
    **{"``": "opening quote", "''": "closing quote", "-LRB-": "opening bracket", "-RRB-": "closing bracket"},
    "NFP": "other punctuation",
}
"""The tags of punctuation, which is not coloured, and what they mean."""

_COLORS: dict[str, int] = {}
_MEANINGS = dict(PUNCTUATION)
for _groups in (_NAMES, _PARTS_OF_SPEECH, _ROLES):
    for _color, _group in enumerate(_groups):
        _COLORS |= dict.fromkeys(_group, _color)
        _MEANINGS |= _group

_PREFIX = re.compile("^[CR]-")  # C-ARG1 continues ARG1, and R-ARG1 refers to it


def color_of(label: str) -> int | None:
    """The number of a label's colour, None if it has none of its own. Chains are numbered from 1, colours from 0."""
    is_number = label.isdecimal() and len(label) < 10
    return int(label) - 1 if is_number else _COLORS.get(_PREFIX.sub("", label))


def legend(labels: Collection[str]) -> dict[str, dict[str, Any]]:
    """The `color` and the `meaning` of each of a model's labels, without `B-` and the like.

    Punctuation has no colour. There are no meanings if less than half of the labels are known: a label of another set
    can have the name of one that is known.
    """
    are_known = sum(_meaning(label) is not None for label in labels) * 2 >= len(labels)
    colors = {label: color for label in labels if (color := color_of(label)) is not None}
    return {
        label: {
            "color": None if are_known and label in PUNCTUATION else colors.get(label, place),
            "meaning": _meaning(label) if are_known else None,
        }
        for place, label in enumerate(labels)
    }


def _meaning(label: str) -> str | None:
    meaning = _MEANINGS.get(_PREFIX.sub("", label))
    before = {"C-": "continues: ", "R-": "refers to: "}.get(label[:2], "")
    return meaning and before + meaning
