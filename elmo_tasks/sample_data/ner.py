"""Sample data for named entity recognition, in the four columns of CoNLL-2003 with IOB1 tags.

A name can be a person, a place, an organization or something else. Only the words before and after it show which.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from elmo_tasks.sample_data.grammar import MarkedSentence, load_grammar, write_sentence
from elmo_tasks.sample_data.task import SampleTask
from elmo_tasks.text.tag_schemes import tags_of_spans

FILES = ("eng.train", "eng.testa", "eng.testb")

_GRAMMAR = load_grammar("ner")
_NUMBERS = {"digit": list(map(str, range(1, 10))), "two_digits": list(map(str, range(10, 31)))}


def _sentence(symbol: str, names: Sequence[str], generator: random.Random) -> MarkedSentence:
    return write_sentence(_GRAMMAR, symbol, {**_NUMBERS, "name": names}, generator)


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of a file. Each document has about ten sentences and begins with a place and a date."""
    left = 0
    for _ in range(count):
        symbol = "sentence"
        if left == 0:
            yield from ("-DOCSTART- -X- O O", "")
            symbol, left = "dateline", generator.randint(6, 14)
        left -= 1
        sentence = _sentence(symbol, names, generator)
        tags = [tags_of_spans(sentence.spans_in(bracket), len(sentence.tokens), "IOB1") for bracket in "[{"]
        yield from map(" ".join, zip(sentence.tokens, sentence.parts_of_speech, *tags, strict=True))
        yield ""


NER = SampleTask(
    files=[[f"ner_conll2003/{file}"] for file in FILES],
    lines=_lines,
    text=lambda names, generator: [_sentence("sentence", names, generator).tokens],
    num_texts=4000,
    seed_prefix="",
    split_seed="{split}",
    num_names=(400, 100, 100),
)
