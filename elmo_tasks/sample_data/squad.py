"""Sample data for reading comprehension, in the JSON of SQuAD v1.1 and 2.0.

A passage says what several people did, where and when. Each question asks for one of these facts. So the passage has
several names, places, years and things that could be the answer, and only the words around them show which one it is.
In version 2.0, a question can be about something that nobody in the passage did.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from elmo_tasks.sample_data.task import SampleTask, files_of_splits
from elmo_tasks.text.tokenizers import TREEBANK

_SENTENCES = 5  # that a passage with its questions counts as
_PASSAGES_OF_ARTICLE = 10
_YEARS = range(1700, 2000)

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


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str, version: str = "1.1") -> list[str]:
    """The JSON of a file. A passage counts as five sentences. In version 2.0, every third question has no answer."""
    count = max(1, count // _SENTENCES)
    passages = [_passage(names, generator, f"{file[:3]}{row}", version) for row in range(count)]
    articles = [
        {"title": passages[start]["context"].split()[0], "paragraphs": passages[start : start + _PASSAGES_OF_ARTICLE]}
        for start in range(0, len(passages), _PASSAGES_OF_ARTICLE)
    ]
    return [json.dumps({"version": version, "data": articles})]


def _text(names: Sequence[str], generator: random.Random) -> Iterator[list[str]]:
    """The statements of a passage, and a question after each."""
    for deed in _deeds(names, generator):
        yield from TREEBANK.strings(deed.statement)
        yield from TREEBANK.strings(_question(deed, generator.choice(tuple(_QUESTIONS))))


def _passage(names: Sequence[str], generator: random.Random, identifier: str, version: str) -> dict[str, Any]:
    """A paragraph with one question about each deed, in the form of the file."""
    statements, questions = [], []
    start = 0  # of the current statement in the passage
    deeds = _deeds(names, generator)
    for number, deed in enumerate(deeds):
        asked = generator.choice(tuple(_QUESTIONS))
        answer = deed.parts[asked]
        # Whole words are searched for, because one name can be the beginning of another.
        (index, *_) = (match.start() for match in re.finditer(rf"\b{re.escape(answer)}\b", deed.statement))
        answers = [{"text": answer, "answer_start": start + index}]
        question: dict[str, Any] = {"id": f"{identifier}-{number}", "question": _question(deed, asked)}
        question["answers"] = answers
        if version != "1.1":
            question["is_impossible"] = generator.random() < 1 / 3
        if question.get("is_impossible"):  # asks what somebody else did, or in another year
            changed, every = ("year", map(str, _YEARS)) if asked in ("person", "thing") else ("person", names)
            absent = generator.choice([each for each in every if not any(each in other.statement for other in deeds)])
            nobody = deed._replace(parts={**deed.parts, changed: absent})
            question |= {"question": _question(nobody, asked), "answers": [], "plausible_answers": answers}
        questions.append(question)
        statements.append(deed.statement)
        start += len(deed.statement) + 1
    return {"context": " ".join(statements), "qas": questions}


def _deeds(names: Sequence[str], generator: random.Random) -> list[Deed]:
    """Three to five deeds with different names, things and years."""
    count = generator.randint(3, 5)
    drawn = generator.sample(names, 3 * count)
    years = generator.sample(_YEARS, count)
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
SQUAD2 = dataclasses.replace(
    SQUAD,
    files=files_of_splits("squad2/{split}-v2.0.json{xz}")[:2],
    lines=functools.partial(_lines, version="v2.0"),
    num_texts=0,  # the texts are those of SQuAD v1.1
)
