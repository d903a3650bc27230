"""Sample data for semantic roles and for finding predicates, in the columns of CoNLL-2012.

The position of a phrase does not determine its role. The subject acts in "Tavo rang the bell" but not in "the bell
rang" and "the bell was rung". "by" marks the actor of a passive, and a place elsewhere; "in" and "to" mark times,
places and receivers. Nor does a word determine whether it is a predicate: people watch boats, and lose a watch.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence

from elmo_tasks.sample_data.grammar import (
    MarkedSentence,
    bracket_column,
    conll_2012_rows,
    load_grammar,
    write_sentence,
)
from elmo_tasks.sample_data.task import SampleTask, files_of_splits
from elmo_tasks.text.tag_schemes import Span

_SENTENCES_OF_DOCUMENT = 10
_GRAMMAR = load_grammar("srl")
_MONTHS = ("March", "April", "June", "July", "August", "October")


def _sentence(symbol: str, names: Sequence[str], generator: random.Random) -> MarkedSentence:
    return write_sentence(_GRAMMAR, symbol, {"name": names, "month": _MONTHS}, generator)


def _sentences(names: Sequence[str], count: int, generator: random.Random) -> Iterator[tuple[int, MarkedSentence]]:
    """Sentences with their numbers from 0. Each document has at most ten, the first of which is an opening."""
    for number in range(count):
        symbol = "sentence" if number % _SENTENCES_OF_DOCUMENT else "opening"
        yield number, _sentence(symbol, names, generator)


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of a file with `count` sentences."""
    document = ""
    for number, sentence in _sentences(names, count, generator):
        if number % _SENTENCES_OF_DOCUMENT == 0:
            yield from ["#end document"] if document else []
            document = f"nw/roles/00/roles_{number // _SENTENCES_OF_DOCUMENT:04}"
            yield f"#begin document ({document}); part 000"
        lemmas, columns = _frames(sentence)
        yield from conll_2012_rows(document, sentence, [*columns, ["-"] * len(sentence.tokens)], lemmas=lemmas)
    yield "#end document"


def _words(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of CoNLL-2005's file of words."""
    for _, sentence in _sentences(names, count, generator):
        yield from (*sentence.tokens, "")


def _props(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of CoNLL-2005's file of lemmas and roles; ARG0 and ARGM-TMP are A0 and AM-TMP there."""
    for _, sentence in _sentences(names, count, generator):
        lemmas, columns = _frames(sentence)
        for index in range(len(sentence.tokens)):
            cells = [lemmas.get(index, ("-",))[0], *(column[index].replace("ARG", "A") for column in columns)]
            yield "\t".join(cells)
        yield ""


def _frames(sentence: MarkedSentence) -> tuple[dict[int, tuple[str, str]], list[list[str]]]:
    """The lemma and sense of each predicate by its index, and the columns of their roles in this order."""
    columns: dict[int, list[str]] = {}  # by the index of the verb
    lemmas = {}
    for frame in sentence.spans:
        if frame.bracket != "{":
            continue
        verb = next(role for role in frame.inner if "=" in role.label)
        lemma, _, sense = verb.label.partition("=")[2].partition(".")
        lemmas[verb.start] = (lemma, sense)
        roles = [Span(role.label.partition("=")[0], role.start, role.end) for role in frame.inner]
        columns[verb.start] = bracket_column(roles, len(sentence.tokens))
    return lemmas, [columns[index] for index in sorted(columns)]


SRL = SampleTask(
    files=files_of_splits(
        "srl_ewt/ewt.{split}.gold_conll{xz}",
        "conll-2012/v4/data/{conll_2012}/data/english/annotations/nw/roles/00/roles_0000.v4_gold_conll",
    ),
    lines=_lines,
    text=lambda names, generator: [_sentence("sentence", names, generator).tokens],
    num_texts=4000,
    seed_prefix="srl ",
    split_seed="srl {split}",
)
_CONLL_2005_FOLDERS = ("train", "devel", "test.wsj")
SRL_WORDS, SRL_PROPS = (
    dataclasses.replace(
        SRL,
        files=[[f"conll05st-release/{folder}/{kind}/made_up.{kind}"] for folder in _CONLL_2005_FOLDERS],
        lines=lines,
    )
    for kind, lines in (("words", _words), ("props", _props))
)
