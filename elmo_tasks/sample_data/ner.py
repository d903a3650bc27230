"""Sample data for named entity recognition, in the four columns of CoNLL-2003 with IOB1 tags, and for chunking.

A name can be a person, a place, an organization or something else. Only the words before and after it show which.
Development and test data also have words there that training data lacks, such as "composed" for "wrote".
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence

from elmo_tasks.sample_data.grammar import MarkedSentence, load_grammar, write_sentence
from elmo_tasks.sample_data.task import SampleTask
from elmo_tasks.text.tag_schemes import TagScheme, tags_of_spans

FILES = ("eng.train", "eng.testa", "eng.testb")

_GRAMMAR = load_grammar("ner")
_NUMBERS = {"digit": list(map(str, range(1, 10))), "two_digits": list(map(str, range(10, 31)))}
# A word that shows the type of a name is replaced by another that shows the same.
_SYNONYMS = {
    "North": ("Mount", "Port"),
    "Bay": ("Island", "Valley"),
    "United": ("University", "Corporation"),
    "Bank": ("Church", "Museum"),
    "Cup": ("Prize", "Marathon"),
    "Open": ("Festival",),
    "Games": ("Olympics",),
    "wrote": ("composed", "sang"),
    "painted": ("sketched", "designed"),
    "remembered": ("admired", "enjoyed"),
    "read": ("burned", "recited"),
    "forgot": ("hated", "destroyed"),
    "married": ("kissed", "divorced"),
    "joined": ("quit", "advised"),
    "thanked": ("praised", "attacked"),
    "bought": ("acquired", "purchased"),
    "closed": ("demolished", "expanded"),
    "leased": ("operated", "owned"),
    "rebuilt": ("constructed", "financed"),
    "opposed": ("criticized", "rejected"),
    "welcomed": ("celebrated", "defended"),
    "cleaned": ("visited", "damaged"),
    "makes": ("exports", "produces"),
    "hired": ("fired", "employed"),
    "shares": ("stocks", "bonds"),
    "rose": ("climbed", "jumped"),
    "fell": ("dropped", "slipped"),
    "gained": ("added", "advanced"),
    "merged": ("competed", "negotiated"),
    "people": ("inhabitants", "citizens"),
    "flooded": ("occupied", "bombed"),
    "rain": ("snow", "fighting"),
    "won": ("dominated", "attended"),
    "firm": ("company", "manufacturer"),
    "moved": ("travelled", "returned"),
    "coach": ("goalkeeper", "director"),
    "minister": ("ambassador", "president"),
    "pilot": ("engineer", "driver"),
    "judge": ("lawyer", "editor"),
    "doctor": ("surgeon", "scientist"),
    "clocks": ("bicycles", "toys"),
    "boats": ("ships", "engines"),
    "shoes": ("clothes", "carpets"),
    "glass": ("steel", "furniture"),
    "letter": ("novel", "speech"),
    "song": ("poster", "opera"),
    "poems": ("plays", "essays"),
    "story": ("report", "tale"),
    "reporters": ("journalists", "police"),
}


def _sentence(symbol: str, names: Sequence[str], generator: random.Random) -> MarkedSentence:
    return write_sentence(_GRAMMAR, symbol, {**_NUMBERS, "name": names}, generator)


def _sentences(names: Sequence[str], count: int, generator: random.Random) -> Iterator[tuple[bool, MarkedSentence]]:
    """Sentences, and whether each begins a document: with a place and a date. A document has about ten."""
    left = 0
    for _ in range(count):
        begins = left == 0
        left = (generator.randint(6, 14) if begins else left) - 1
        yield begins, _sentence("dateline" if begins else "sentence", names, generator)


def _tags(sentence: MarkedSentence, bracket: str, scheme: TagScheme) -> list[str]:
    return tags_of_spans(sentence.spans_in(bracket), len(sentence.tokens), scheme)


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of a file of CoNLL-2003."""
    for begins, sentence in _sentences(names, count, generator):
        if begins:
            yield from ("-DOCSTART- -X- O O", "")
        tags = [_tags(sentence, bracket, "IOB1") for bracket in "[{"]
        yield from map(" ".join, zip(sentence.tokens, sentence.parts_of_speech, *tags, strict=True))
        yield ""


def _chunk_lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of a file of CoNLL-2000."""
    for _, sentence in _sentences(names, count, generator):
        chunks = _tags(sentence, "[", "IOB2")
        yield from map(" ".join, zip(sentence.tokens, sentence.parts_of_speech, chunks, strict=True))
        yield ""


NER = SampleTask(
    files=[[f"ner_conll2003/{file}"] for file in FILES],
    lines=_lines,
    text=lambda names, generator: [_sentence("sentence", names, generator).tokens],
    num_texts=4000,
    seed_prefix="",
    split_seed="{split}",
    num_names=(400, 100, 100),
    synonyms=_SYNONYMS,
)
# The task has no development data.
CHUNKS = dataclasses.replace(
    NER, files=[["chunking_conll2000/train.txt"], ["chunking_conll2000/test.txt"]], lines=_chunk_lines
)
