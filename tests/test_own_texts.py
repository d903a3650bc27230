"""The texts with gold labels in `trained_models/own_texts`: each has a reader, which takes it."""

from pathlib import Path
from typing import Any

import datasets
import pytest

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
    files = {path.name for path in FOLDER.iterdir()} - {"README.md"}
    assert files == READERS.keys()
    readme = (FOLDER / "README.md").read_text()
    assert not [name for name in files if f"`{name}`" not in readme]


@pytest.mark.parametrize("name", READERS)
def test_no_text_comes_twice(name: str) -> None:
    texts = texts_of(name)
    assert len(set(texts)) == len(texts)
