"""Sample data for named entity recognition, in the four columns of CoNLL-2003 with IOB1 tags.

A name can be a person, a place, an organization or something else. Only the words before and after it show which. The
development and test files have other names than the training file.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from elmo_tasks.sample_data.files import SPLITS, write_lines
from elmo_tasks.sample_data.grammar import AnnotatedSentence, Grammar, write_sentence
from elmo_tasks.sample_data.names import make_names
from elmo_tasks.text.tag_schemes import tags_of_spans

FILES = ("eng.train", "eng.testa", "eng.testb")
_NAMES_OF_SPLIT = (400, 100, 100)
_CORPUS_SENTENCES = 4000

_GRAMMAR: Grammar = {
    "dateline": ("[NP {LOC <@name>/NNP } 20<@two_digits>-0<@digit>-1<@digit>/CD ]",),
    "sentence": (
        "<statement> ./.",
        "<statement> ./.",
        "<statement> <when> ./.",
        "<statement> <when> ./.",
        "[PP In/IN ] [NP <place> ] ,/, <statement> ./.",
        "<statement> ,/, [NP <person> ] [VP said/VBD ] <when> ./.",
        "[NP <person> ] [VP told/VBD ] [NP reporters/NNS ] [SBAR that/IN ] <statement> ./.",
        "[NP <organization> ] <number> [NP <organization> ] <number>",
        "[NP the/DT <adjective> <event> ] [VP begins/VBZ ] [PP in/IN ] [NP <place> ] <when> ./.",
    ),
    "statement": (
        "[NP <person> ] [VP <did_as_person> ] [NP <thing> ]",
        "[NP <person> ] ,/, [NP who/WP ] [VP <did_as_person> ] [NP <thing> ] ,/, [VP moved/VBD ] <to_place>",
        "[NP <person> ] [VP married/VBD ] [NP <person> ] [PP near/IN ] [NP <place> ]",
        "[NP <person> ] [VP joined/VBD ] [NP <organization> ] [PP as/IN ] [NP <role> ]",
        "[NP the/DT <nationality> <role> ] [VP thanked/VBD ] [NP <person> ]",
        "[NP <organization> ] [VP <did_as_organization> ] [NP a/DT <facility> ] [PP in/IN ] [NP <place> ]",
        "[NP <organization> ] ,/, [NP which/WDT ] [VP makes/VBZ ] [NP <goods> ] ,/, [VP hired/VBD ] [NP <person> ]",
        "[NP shares/NNS ] [PP of/IN ] [NP <organization> ] [VP <moved> ] [NP <number_token> percent/NN ]",
        "[NP <organization> ] [VP merged/VBD ] [PP with/IN ] [NP <organization> ]",
        "[NP the/DT people/NNS ] [PP of/IN ] [NP <place> ] [VP <did_as_people> ] [NP the/DT <adjective> <facility> ]",
        "[NP <place> ] ,/, [ADVP where/WRB ] [NP <goods> ] [VP are/VBP made/VBN ] ,/, [VP was/VBD flooded/VBN ]",
        "[NP heavy/JJ rain/NN ] [VP fell/VBD ] [PP between/IN ] [NP <place> ] and/CC [NP <place> ]",
        "[NP <person> ] [VP won/VBD ] [NP the/DT <event> ] [PP in/IN ] [NP <place> ]",
        "[NP <person> ] [VP lost/VBD ] [NP the/DT <nationality> <event> ] [PP to/TO ] [NP <person> ]",
        "[NP <nationality> <goods> ] [VP were/VBD sold/VBN ] [PP by/IN ] [NP the/DT firm/NN ] [NP <organization> ]",
    ),
    "to_place": ("[PP to/TO ] [NP <place> ]",),
    "when": (
        "[PP on/IN ] [NP <day> ]",
        "[NP last/JJ week/NN ]",
        "[NP <number_token> days/NNS ] [ADVP ago/RB ]",
    ),
    "person": ("{PER <@name>/NNP }", "{PER <@name>/NNP }", "{PER <@name>/NNP <@name>/NNP }"),
    "place": (
        "{LOC <@name>/NNP }",
        "{LOC <@name>/NNP }",
        "{LOC <@name>/NNP }",
        "{LOC North/NNP <@name>/NNP }",
        "{LOC <@name>/NNP Bay/NNP }",
    ),
    "organization": (
        "{ORG <@name>/NNP }",
        "{ORG <@name>/NNP }",
        "{ORG <@name>/NNP }",
        "{ORG <@name>/NNP United/NNP }",
        "{ORG Bank/NNP of/IN <@name>/NNP }",
    ),
    "nationality": ("{MISC <@name>ese/JJ }", "{MISC <@name>ian/JJ }"),
    "event": ("{MISC <@name>/NNP Cup/NNP }", "{MISC <@name>/NNP Games/NNPS }", "{MISC <@name>/NNP Open/NNP }"),
    "did_as_person": ("wrote/VBD", "painted/VBD", "remembered/VBD", "read/VBD", "forgot/VBD"),
    "did_as_organization": ("bought/VBD", "closed/VBD", "leased/VBD", "rebuilt/VBD"),
    "did_as_people": ("opposed/VBD", "welcomed/VBD", "cleaned/VBD"),
    "moved": ("rose/VBD", "fell/VBD", "gained/VBD", "lost/VBD"),
    "thing": ("a/DT <adjective> letter/NN", "the/DT song/NN", "two/CD poems/NNS", "a/DT <adjective> story/NN"),
    "goods": ("clocks/NNS", "boats/NNS", "shoes/NNS", "glass/NN"),
    "facility": ("bridge/NN", "harbour/NN", "factory/NN", "stadium/NN", "mill/NN"),
    "role": ("coach/NN", "minister/NN", "pilot/NN", "judge/NN", "doctor/NN"),
    "adjective": ("new/JJ", "long/JJ", "famous/JJ", "small/JJ", "second/JJ"),
    "day": ("Monday/NNP", "Tuesday/NNP", "Thursday/NNP", "Friday/NNP", "Sunday/NNP"),
    "number": ("[NP <number_token> ]",),
    "number_token": ("<@digit>/CD", "<@two_digits>/CD"),
}


def write(folder: Path, seed: int, sentences: tuple[int, int, int]) -> list[Path]:
    """Writes `eng.train`, `eng.testa` and `eng.testb` to `folder/ner_conll2003`."""
    return [
        write_lines(folder / "ner_conll2003" / file, _lines(names, count, random.Random(f"{seed} {split}")))
        for file, split, names, count in zip(FILES, SPLITS, _names_of_splits(seed), sentences, strict=True)
    ]


def corpus(seed: int) -> Iterator[list[str]]:
    """Sentences without labels, with the names of all three files. Word vectors are made from them."""
    lists = _lists([name for names in _names_of_splits(seed) for name in names])
    generator = random.Random(f"{seed} corpus")
    for _ in range(_CORPUS_SENTENCES):
        yield write_sentence(_GRAMMAR, "sentence", lists, generator).tokens


def _names_of_splits(seed: int) -> list[list[str]]:
    return make_names(random.Random(f"{seed} names"), _NAMES_OF_SPLIT)


def _lists(names: list[str]) -> dict[str, list[str]]:
    return {
        "name": names,
        "digit": [str(number) for number in range(1, 10)],
        "two_digits": [str(number) for number in range(10, 31)],
    }


def _lines(names: list[str], count: int, generator: random.Random) -> Iterator[str]:
    """The lines of a file. Each document has about ten sentences and begins with a place and a date."""
    lists = _lists(names)
    left = 0
    for _ in range(count):
        symbol = "sentence"
        if left == 0:
            yield from ("-DOCSTART- -X- O O", "")
            symbol, left = "dateline", generator.randint(6, 14)
        left -= 1
        yield from _columns(write_sentence(_GRAMMAR, symbol, lists, generator))
        yield ""


def _columns(sentence: AnnotatedSentence) -> Iterator[str]:
    chunks = tags_of_spans(sentence.chunks, len(sentence.tokens), "IOB1")
    entities = tags_of_spans(sentence.entities, len(sentence.tokens), "IOB1")
    for fields in zip(sentence.tokens, sentence.parts_of_speech, chunks, entities, strict=True):
        yield " ".join(fields)
