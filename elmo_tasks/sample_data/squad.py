"""Sample data for reading comprehension, in the JSON of SQuAD v1.1.

A passage says what several people did, where and when. Each question asks for one of these facts. So the passage has
several names, places, years and things that could be the answer, and only the words around them show which one it is.
The development file has other names than the training file.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.sample_data.files import write_lines
from elmo_tasks.sample_data.names import make_names
from elmo_tasks.text.tokenization import tokenize_to_strings

# The official names; SQuAD does not publish its test file.
_FILES = ("train-v1.1.json.xz", "dev-v1.1.json")
_SENTENCES = 5  # that a passage with its questions counts as
_PASSAGES_OF_ARTICLE = 10
_NAMES_OF_SPLIT = (200, 100)
_CORPUS_PASSAGES = 600

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


def write(folder: Path, seed: int, sentences: tuple[int, int, int]) -> list[Path]:
    """Writes `folder/squad/train-v1.1.json.xz` and `dev-v1.1.json`. A passage counts as five sentences."""
    paths = []
    for name, names, count in zip(_FILES, _names_of_splits(seed), sentences[: len(_FILES)], strict=True):
        generator = random.Random(f"{seed} squad {name}")
        passages = [_passage(names, generator, f"{name[:3]}{row}") for row in range(max(1, count // _SENTENCES))]
        articles = [
            {
                "title": passages[start]["context"].split()[0],
                "paragraphs": passages[start : start + _PASSAGES_OF_ARTICLE],
            }
            for start in range(0, len(passages), _PASSAGES_OF_ARTICLE)
        ]
        paths.append(write_lines(folder / "squad" / name, [json.dumps({"version": "1.1", "data": articles})]))
    return paths


def corpus(seed: int) -> Iterator[list[str]]:
    """Statements and questions without answers, with the names of both files. Word vectors are made from them."""
    names = [name for each in _names_of_splits(seed) for name in each]
    generator = random.Random(f"{seed} squad corpus")
    for _ in range(_CORPUS_PASSAGES):
        for deed in _deeds(names, generator):
            yield from tokenize_to_strings(deed.statement)
            yield from tokenize_to_strings(_question(deed, generator.choice(tuple(_QUESTIONS))))


def _names_of_splits(seed: int) -> list[list[str]]:
    return make_names(random.Random(f"{seed} squad names"), _NAMES_OF_SPLIT)


def _passage(names: Sequence[str], generator: random.Random, identifier: str) -> dict[str, Any]:
    """A paragraph with one question about each deed, in the form of the file."""
    statements, questions = [], []
    start = 0  # of the current statement in the passage
    for number, deed in enumerate(_deeds(names, generator)):
        asked = generator.choice(tuple(_QUESTIONS))
        answer = deed.parts[asked]
        place = start + _place(answer, deed.statement)
        questions.append(
            {
                "id": f"{identifier}-{number}",
                "question": _question(deed, asked),
                "answers": [{"text": answer, "answer_start": place}],
            }
        )
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


def _place(answer: str, statement: str) -> int:
    """Where the answer starts in the statement, as whole words: one name can be the beginning of another."""
    match = re.search(rf"\b{re.escape(answer)}\b", statement)
    assert match is not None
    return match.start()


def _question(deed: Deed, asked: str) -> str:
    return _QUESTIONS[asked].format(**deed.parts)
