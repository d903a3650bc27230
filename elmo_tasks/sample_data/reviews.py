"""Sample data for sets of labels, for numbers and for numbers of pairs, in tables, with the clauses of `sst5`.

- `multi_label`: which things a sentence praises and which it finds fault with, in `text` and `labels`.
- `regression`: how good the things of a sentence are, from 0 to 10, in `text` and `score`.
- `pair_regression`: how alike two sentences are, from 0 to 5, in `premise`, `hypothesis` and `score`.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterable, Sequence

from elmo_tasks.sample_data.sst5 import NEUTRAL, Phrase, make_clause
from elmo_tasks.sample_data.task import SampleTask, files_of_splits

_OPINIONS = {NEUTRAL - 2: "fault", NEUTRAL - 1: "fault", NEUTRAL + 1: "praise", NEUTRAL + 2: "praise"}


def _sentence(clauses: Sequence[Phrase]) -> str:
    text = ", and ".join(" ".join(clause.tokens) for clause in clauses)
    return f"{text[0].upper()}{text[1:]}."


def _clauses(names: Sequence[str], generator: random.Random) -> list[Phrase]:
    return [make_clause(names, generator) for _ in range(generator.choice((1, 2)))]


def _labels(names: Sequence[str], generator: random.Random) -> tuple[str, ...]:
    clauses = _clauses(names, generator)
    found = {
        f"{_OPINIONS[clause.sentiment]}: {clause.tokens[1]}" for clause in clauses if clause.sentiment in _OPINIONS
    }
    return _sentence(clauses), ", ".join(sorted(found))


def _rating(names: Sequence[str], generator: random.Random) -> tuple[str, ...]:
    clauses = _clauses(names, generator)
    return _sentence(clauses), f"{sum(2.5 * clause.sentiment for clause in clauses) / len(clauses):g}"


def _similarity(names: Sequence[str], generator: random.Random) -> tuple[str, ...]:
    """Two clauses, of which the second may repeat words of the first: the score is the share of words in common."""
    first, second = make_clause(names, generator), make_clause(names, generator)
    if generator.random() < 0.5:
        other = first.tokens if generator.random() < 0.3 else (*first.tokens[:2], *second.tokens[2:])
        second = second._replace(tokens=other)
    one, another = set(first.tokens), set(second.tokens)
    return _sentence([first]), _sentence([second]), f"{5 * len(one & another) / len(one | another):.1f}"


_Row = Callable[[Sequence[str], random.Random], tuple[str, ...]]


def _table(name: str, columns: Sequence[str], row: _Row) -> SampleTask:
    """The tables of a task, with rows from the names of a split and a random number generator."""

    def lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterable[str]:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([columns, *(row(names, generator) for _ in range(count))])
        return text.getvalue().splitlines()

    return SampleTask(
        files=files_of_splits(f"{name}/{{split}}.csv"),
        lines=lines,
        text=lambda names, generator: [],
        num_texts=0,  # the word vectors already know the words
        seed_prefix=f"{name} ",
        split_seed=f"{name} {{split}}",
    )


MULTI_LABEL = _table("multi_label", ("text", "labels"), _labels)
REGRESSION = _table("regression", ("text", "score"), _rating)
PAIR_REGRESSION = _table("pair_regression", ("premise", "hypothesis", "score"), _similarity)
