"""Sample data for semantic roles and for finding predicates, in the columns of CoNLL-2012.

The position of a phrase does not determine its role. The subject acts in "Tavo rang the bell" but not in "the bell
rang" and "the bell was rung". "by" marks the actor of a passive, and a place elsewhere; "in" and "to" mark times,
places and receivers. Nor does a word determine whether it is a predicate: people watch boats, and lose a watch. The
development and test files have other names than the training file.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_tasks.sample_data.files import CONLL_2012_SPLITS, SPLITS, write_lines
from elmo_tasks.sample_data.grammar import Grammar, expand
from elmo_tasks.sample_data.names import make_names
from elmo_tasks.text.tag_schemes import Span

_NAMES_OF_SPLIT = (200, 50, 50)
_CORPUS_SENTENCES = 4000
_SENTENCES_OF_DOCUMENT = 10

# Braces enclose frames. Parentheses enclose roles, such as (ARG0 ... ); a role belongs to the innermost frame.
# The label of a verb, such as (V=open.01, has its lemma and sense.
_GRAMMAR: Grammar = {
    "opening": ("<event> ./.",),  # has at least one predicate
    "sentence": (
        "<event> ./.",
        "<event> ./.",
        "<event> ./.",
        "{ (ARG0 <person> ) (V=say.01 said/VBD ) (ARG1 <event> ) } ./.",
        "{ (ARG1 <event> ) ,/, (ARG0 <person> ) (V=say.01 said/VBD ) } ./.",
        "{ (ARG1 the/DT <thing> ) ,/, (ARG0 <person> ) (V=say.01 said/VBD ) ,/, (C-ARG1 is/VBZ <quality> ) } ./.",
        "{ (ARG1 <some_thing> ) (V=please.01 pleases/VBZ ) (ARG0 <person> ) } ./.",
        "A/DT <quality> <thing> <beside> ./.",
        "No/DT <thing> <beside> ,/, no/DT <thing> <in_place> ./.",
    ),
    "event": (
        "{ <doer> <does> (ARG1 <some_thing> ) <when> }",
        "{ <doer> <does> (ARG1 <some_thing> ) (ARGM-LOC <beside> ) }",
        "{ (ARG1 the/DT <thing> ) <does> <when> }",
        "{ (ARG1 the/DT <thing> ) <does> (ARGM-LOC <beside> ) }",
        "{ (ARG1 the/DT <thing> ) was/VBD <done> (ARG0 by/IN <person> ) <when> }",
        "{ (ARG1 the/DT <thing> ) was/VBD <done> (ARGM-LOC by/IN the/DT <site> ) }",
        "{ <doer> <gives> (ARG2 <person> ) (ARG1 <some_thing> ) <when> }",
        "{ <doer> <gives> (ARG1 <some_thing> ) (ARG2 to/IN <person> ) }",
        "{ <doer> <goes> (ARG4 to/IN <place> ) <when> }",
        "{ <doer> <goes> (ARGM-LOC <beside> ) }",
        "{ (ARG0 they/PRP ) (V=watch.01 watch/VBP ) (ARG1 <some_thing> ) (ARGM-TMP <month> ) }",
        "{ (ARG0 they/PRP ) (ARGM-MOD can/MD ) (ARGM-NEG not/RB ) (V=turn.01 turn/VB ) (ARG1 <some_thing> ) }",
        "{ (ARG0 you/PRP ) (ARGM-MOD must/MD ) (V=ring.01 ring/VB ) (ARG1 <some_thing> ) }",
    ),
    "doer": ("(ARG0 <person> )", "(ARG0 <person> )", "(ARG0 the/DT <thing> )"),
    "some_thing": (
        "the/DT <thing>",
        "the/DT <thing> of/IN <person>",
        "a/DT <quality> <thing>",
        "{ (ARG1 the/DT <thing> ) (R-ARG1 that/WDT ) (ARG0 <person> ) <does> }",
        "{ (ARG1 the/DT <thing> ) (R-ARG1 that/WDT ) <does> }",
        "{ (ARG0 the/DT <thing> ) (R-ARG0 that/WDT ) <does> (ARG1 the/DT <thing> ) }",
    ),
    "when": ("(ARGM-TMP <month> )", "(ARGM-TMP on/IN <day> )", "(ARGM-LOC <in_place> )"),
    "month": ("in/IN <@month>/NNP",),
    "in_place": ("in/IN <place>",),
    "beside": ("by/IN the/DT <site>", "by/IN <place>"),
    "does": (
        "(V=open.01 opened/VBD )",
        "(V=close.01 closed/VBD )",
        "(V=ring.01 rang/VBD )",
        "(V=turn.01 turned/VBD )",
        "(V=break.01 broke/VBD )",
    ),
    "done": (
        "(V=open.01 opened/VBN )",
        "(V=close.01 closed/VBN )",
        "(V=ring.01 rung/VBN )",
        "(V=turn.01 turned/VBN )",
        "(V=break.01 broken/VBN )",
    ),
    "gives": ("(V=give.01 gave/VBD )", "(V=sell.01 sold/VBD )", "(V=show.01 showed/VBD )"),
    "goes": ("(V=walk.01 walked/VBD )", "(V=run.02 ran/VBD )", "(V=turn.01 turned/VBD )"),
    "person": ("<@name>/NNP", "<@name>/NNP", "<@name>/NNP <@name>/NNP"),
    "place": ("<@name>/NNP", "<@name>/NNP", "<@name>/NNP Bay/NNP"),
    "thing": ("door/NN", "bell/NN", "wheel/NN", "window/NN", "lamp/NN", "watch/NN", "ring/NN", "turn/NN"),
    "quality": ("new/JJ", "broken/JJ", "closed/JJ", "small/JJ", "heavy/JJ"),
    "site": ("river/NN", "mill/NN", "walk/NN", "bridge/NN"),
    "day": ("Monday/NNP", "Tuesday/NNP", "Friday/NNP", "Sunday/NNP"),
}
_MONTHS = ("March", "April", "June", "July", "August", "October")


@dataclasses.dataclass
class Frame:
    """A predicate with its sense and the spans of its roles and of the predicate itself. Ends are inclusive."""

    roles: list[Span] = dataclasses.field(default_factory=list)
    place: int = 0
    lemma: str = ""
    sense: str = ""


@dataclasses.dataclass
class Sentence:
    """Tokens with their parts of speech, and the frames of the predicates in the order of the sentence."""

    tokens: list[str] = dataclasses.field(default_factory=list)
    parts_of_speech: list[str] = dataclasses.field(default_factory=list)
    frames: list[Frame] = dataclasses.field(default_factory=list)


def write(folder: Path, seed: int, sentences: tuple[int, int, int]) -> list[Path]:
    """Writes `ewt.train.gold_conll.xz` and so on to `folder/srl_ewt`, and the same data below `folder/conll-2012`."""
    paths = []
    for split, names, count in zip(SPLITS, _names_of_splits(seed), sentences, strict=True):
        lines = list(_lines(names, count, random.Random(f"{seed} srl {split}")))
        ending = ".xz" if split == "train" else ""
        paths.append(write_lines(folder / "srl_ewt" / f"ewt.{split}.gold_conll{ending}", lines))
        below = Path("conll-2012/v4/data", CONLL_2012_SPLITS[split], "data/english/annotations/nw/roles/00")
        paths.append(write_lines(folder / below / "roles_0000.v4_gold_conll", lines))
    return paths


def corpus(seed: int) -> Iterator[list[str]]:
    """Sentences without labels, with the names of all three files. Word vectors are made from them."""
    names = [name for names in _names_of_splits(seed) for name in names]
    generator = random.Random(f"{seed} srl corpus")
    for _ in range(_CORPUS_SENTENCES):
        yield _sentence("sentence", names, generator).tokens


def _names_of_splits(seed: int) -> list[list[str]]:
    return make_names(random.Random(f"{seed} srl names"), _NAMES_OF_SPLIT)


def _sentence(symbol: str, names: Sequence[str], generator: random.Random) -> Sentence:
    sentence = Sentence()
    open_frames: list[Frame] = []
    open_roles: list[tuple[str, int]] = []
    for item in expand(_GRAMMAR, symbol, {"name": names, "month": _MONTHS}, generator):
        if item == "{":
            open_frames.append(Frame())
        elif item == "}":
            sentence.frames.append(open_frames.pop())
        elif item[0] == "(":
            role, _, sense = item[1:].partition("=")
            open_roles.append((role, len(sentence.tokens)))
            if sense:
                frame = open_frames[-1]
                frame.place = len(sentence.tokens)
                frame.lemma, _, frame.sense = sense.partition(".")
        elif item == ")":
            open_frames[-1].roles.append(Span(*open_roles.pop(), len(sentence.tokens) - 1))
        else:
            token, _, part_of_speech = item.rpartition("/")
            sentence.tokens.append(token)
            sentence.parts_of_speech.append(part_of_speech)
    sentence.tokens[0] = sentence.tokens[0][:1].upper() + sentence.tokens[0][1:]
    sentence.frames.sort(key=lambda frame: frame.place)
    return sentence


def _lines(names: Sequence[str], count: int, generator: random.Random) -> Iterator[str]:
    """The lines of a file with `count` sentences. Each document has at most ten."""
    for first in range(0, count, _SENTENCES_OF_DOCUMENT):
        document = f"nw/roles/00/roles_{first // _SENTENCES_OF_DOCUMENT:04}"
        yield f"#begin document ({document}); part 000"
        for number in range(first, min(count, first + _SENTENCES_OF_DOCUMENT)):
            symbol = "opening" if number == first else "sentence"
            yield from _rows(_sentence(symbol, names, generator), document)
            yield ""
        yield "#end document"


def _rows(sentence: Sentence, document: str) -> Iterator[str]:
    columns = [_column(frame.roles, len(sentence.tokens)) for frame in sentence.frames]
    frames = {frame.place: frame for frame in sentence.frames}
    parse = _column([Span("TOP", 0, len(sentence.tokens) - 1)], len(sentence.tokens))
    for place, (token, part_of_speech) in enumerate(zip(sentence.tokens, sentence.parts_of_speech, strict=True)):
        frame = frames.get(place)
        lemma = [frame.lemma, frame.sense] if frame else ["-", "-"]
        roles = [column[place] for column in columns]
        fields = [document, "0", str(place), token, part_of_speech, parse[place], *lemma, "-", "-", "*", *roles, "-"]
        yield "   ".join(fields)


def _column(spans: Sequence[Span], length: int) -> list[str]:
    """The cells of a column that marks spans with parentheses, one cell per token."""
    begins = {start: f"({label}" for label, start, _ in spans}
    ends = {span.end for span in spans}
    return [f"{begins.get(place, '')}*{')' if place in ends else ''}" for place in range(length)]
