"""Sample data for semantic roles and for finding predicates, in the columns of CoNLL-2012.

The position of a phrase does not determine its role. The subject acts in "Tavo rang the bell" but not in "the bell
rang" and "the bell was rung". "by" marks the actor of a passive, and a place elsewhere; "in" and "to" mark times,
places and receivers. Nor does a word determine whether it is a predicate: people watch boats, and lose a watch.
"""

from __future__ import annotations

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


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of a file with `count` sentences. Each document has at most ten."""
    for first in range(0, count, _SENTENCES_OF_DOCUMENT):
        document = f"nw/roles/00/roles_{first // _SENTENCES_OF_DOCUMENT:04}"
        yield f"#begin document ({document}); part 000"
        for number in range(first, min(count, first + _SENTENCES_OF_DOCUMENT)):
            symbol = "opening" if number == first else "sentence"
            yield from _rows(_sentence(symbol, names, generator), document)
        yield "#end document"


def _rows(sentence: MarkedSentence, document: str) -> Iterator[str]:
    length = len(sentence.tokens)
    columns: dict[int, list[str]] = {}  # by the index of the verb
    lemmas = {}
    for frame in sentence.spans:
        if frame.bracket != "{":
            continue
        verb = next(role for role in frame.inner if "=" in role.label)
        lemma, _, sense = verb.label.partition("=")[2].partition(".")
        lemmas[verb.start] = (lemma, sense)
        roles = [Span(role.label.partition("=")[0], role.start, role.end) for role in frame.inner]
        columns[verb.start] = bracket_column(roles, length)
    roles_of_frames = [columns[index] for index in sorted(columns)]
    return conll_2012_rows(document, sentence, [*roles_of_frames, ["-"] * length], lemmas=lemmas)


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
