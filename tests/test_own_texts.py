"""The texts with gold labels in `trained_models/own_texts`: each has a reader, which takes it."""

from pathlib import Path
from typing import Any

import datasets
import pytest

from benchmarks import visitors
from tests.data_readers.readers import build

FOLDER = Path(__file__).parents[1] / "trained_models" / "own_texts"

READERS: dict[str, dict[str, Any]] = {
    "ner.txt": {"type": "conll2003"},
    "names_ewt.txt": {"type": "conll2003"},
    "sentiment_ewt.txt": {"type": "sst"},
    "sentiment_films.txt": {"type": "sst"},
    "sentiment_other.txt": {"type": "sst"},
    "coreference.v4_gold_conll": {"type": "coref_conll2012"},
    "reading.json": {"type": "squad"},
    "reading_no_answer.json": {"type": "squad", "no_answer": True},
    "reading_exchanged.json": {"type": "squad", "no_answer": True},
    "inference.jsonl": {"type": "snli"},
    "pos.conllu": {"type": "conllu", "tag_column": "xpos"},
    "roles.gold_conll": {"type": "srl_conll2012"},
}


def read(name: str) -> datasets.Dataset:
    return build(READERS[name]).read(FOLDER / name)


def texts_of(name: str) -> list[str]:
    columns = ("tokens", "sentences", "question", "premise", "hypothesis", "predicate")
    return [str([row[column] for column in columns if column in row]) for row in read(name)]


def test_every_file_is_described_and_has_a_reader() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.is_file()} - {"README.md"}
    assert files == READERS.keys()
    readme = (FOLDER / "README.md").read_text()
    assert not [name for name in files if f"`{name}`" not in readme]


@pytest.mark.parametrize("name", READERS)
def test_no_text_comes_twice(name: str) -> None:
    texts = texts_of(name)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("task", visitors.MODELS)
def test_thirty_short_texts_for_each_task(task: str) -> None:
    lines = (FOLDER / "visitors" / f"{task}.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(lines)) == 30


def test_brackets_mark_spans_of_a_text() -> None:
    text, spans = visitors.bracketed("[2 [1 Ann] 's boat] sank , and [1 she] too")
    assert text == "Ann 's boat sank , and she too"
    assert [(label, text[first:end]) for label, first, end in spans] == [
        ("1", "Ann"),
        ("1", "she"),
        ("2", "Ann 's boat"),
    ]


def test_a_text_counts_only_if_all_of_it_is_right() -> None:
    def predictor(_: str) -> list[dict[str, Any]]:
        return [{"mentions": [{"cluster": 0, "start_char": first, "end_char": end} for first, end in found]}]

    line = "[1 Ann] met [2 Bo] and [1 she] saw [2 him] ."
    found = [(0, 3), (15, 18)]
    right, said, mixed = visitors.coreference(predictor, line)
    assert right == [[(0, 3), (15, 18)], [(8, 10), (23, 26)]]
    assert said == [[(0, 3), (15, 18)]]
    assert not mixed
    found.append((8, 10))
    assert visitors.coreference(predictor, line)[2]
