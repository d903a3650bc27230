"""Sample data for reading comprehension, in the JSON of SQuAD v1.1.

A passage says what several people did, where and when. Each question asks for one of these facts. So the passage has
several names, places, years and things that could be the answer, and only the words around them show which one it is.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from elmo_tasks.sample_data.task import SampleTask, files_of_splits
from elmo_tasks.text.tokenizers import TREEBANK

_SENTENCES = 5  # that a passage with its questions counts as
_PASSAGES_OF_ARTICLE = 10

_DEEDS = (
    ("built", "build", ("a mill", "a stone bridge", "a lighthouse", "two barns")),
    ("painted", "paint", ("a fresco", "the old gate", "nine portraits", "a row of boats")),
    ("sold", "sell", ("a boat", "some land", "forty sheep", "a famous clock")),
    ("wrote", "write", ("a long poem", "three songs", "a book on bees", "the town's history")),
)
_STATEMENTS = (
    "{person} {did} {thing} in {place} in {year}.",
    "In {year}, {person} {did} {thing} near {place}.",
    "In {place}, {thing} that {person} {did} in {year} can still be seen.",
    "{person}, who was born in {origin}, {did} {thing} in {place} in {year}.",
)
_QUESTIONS = {
    "person": "Who {did} {thing} in {year}?",
    "thing": "What did {person} {do} in {year}?",
    "place": "Where did {person} {do} {thing}?",
    "year": "When did {person} {do} {thing}?",
}


class Deed(NamedTuple):
    """What somebody did: the statement in the passage, and its parts by name."""

    statement: str
    parts: dict[str, str]


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> list[str]:
    """The JSON of a file. A passage counts as five sentences."""
    passages = [_passage(names, generator, f"{file[:3]}{row}") for row in range(max(1, count // _SENTENCES))]
    articles = [
        {"title": passages[start]["context"].split()[0], "paragraphs": passages[start : start + _PASSAGES_OF_ARTICLE]}
        for start in range(0, len(passages), _PASSAGES_OF_ARTICLE)
    ]
    return [json.dumps({"version": "1.1", "data": articles})]


def _text(names: Sequence[str], generator: random.Random) -> Iterator[list[str]]:
    """The statements of a passage, and a question after each."""
    for deed in _deeds(names, generator):
        yield from TREEBANK.strings(deed.statement)
        yield from TREEBANK.strings(_question(deed, generator.choice(tuple(_QUESTIONS))))


def _passage(names: Sequence[str], generator: random.Random, identifier: str) -> dict[str, Any]:
    """A paragraph with one question about each deed, in the form of the file."""
    statements, questions = [], []
    start = 0  # of the current statement in the passage
    for number, deed in enumerate(_deeds(names, generator)):
        asked = generator.choice(tuple(_QUESTIONS))
        answer = deed.parts[asked]
        # Whole words are searched for, because one name can be the beginning of another.
        (index, *_) = (match.start() for match in re.finditer(rf"\b{re.escape(answer)}\b", deed.statement))
        answers = [{"text": answer, "answer_start": start + index}]
        questions.append({"id": f"{identifier}-{number}", "question": _question(deed, asked), "answers": answers})
        statements.append(deed.statement)
        start += len(deed.statement) + 1
    return {"context": " ".join(statements), "qas": questions}


def _deeds(names: Sequence[str], generator: random.Random) -> list[Deed]:
    """Three to five deeds with different names, things and years."""
    count = generator.randint(3, 5)
    drawn = generator.sample(names, 3 * count)
    years = generator.sample(range(1700, 2000), count)
    things = generator.sample([(did, do, thing) for did, do, all_things in _DEEDS for thing in all_things], count)
    deeds = []
    for row, (did, do, thing) in enumerate(things):
        person, place, origin = drawn[3 * row : 3 * row + 3]
        parts = {"person": person, "place": place, "origin": origin, "year": str(years[row])}
        parts |= {"did": did, "do": do, "thing": thing}
        deeds.append(Deed(generator.choice(_STATEMENTS).format(**parts), parts))
    return deeds


def _question(deed: Deed, asked: str) -> str:
    return _QUESTIONS[asked].format(**deed.parts)


SQUAD = SampleTask(
    files=files_of_splits("squad/{split}-v1.1.json{xz}")[:2],  # SQuAD does not publish its test file
    lines=_lines,
    text=_text,
    num_texts=600,
    seed_prefix="squad ",
    split_seed="squad {file}",
    num_names=(200, 100),
)
