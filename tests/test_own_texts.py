"""The texts with gold labels in `trained_models/own_texts`: readers take them, and they hold what their README says."""

import itertools
import json
from collections import Counter
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


def test_names() -> None:
    rows = read("ner.txt")
    kinds = Counter(tag[2:] for tags in rows["tags"] for tag in tags if tag[:2] in ("B-", "U-"))
    assert len(rows) == 300
    assert kinds.keys() == {"PER", "ORG", "LOC", "MISC"}
    assert min(kinds.values()) > 100


def test_the_sentences_of_the_web_treebank_have_labels_of_every_kind() -> None:
    names, sentiment = read("names_ewt.txt"), read("sentiment_ewt.txt")
    kinds = Counter(tag[2:] for tags in names["tags"] for tag in tags if tag[:2] in ("B-", "U-"))
    assert kinds == {"LOC": 201, "PER": 171, "ORG": 133, "MISC": 90}
    assert sorted(Counter(sentiment["label"]).values()) == [42, 76, 77, 92, 122]
    assert (len(names), len(sentiment)) == (400, 409)


@pytest.mark.parametrize("name", ["sentiment_films.txt", "sentiment_other.txt"])
def test_sentiment_has_as_many_sentences_of_each_class(name: str) -> None:
    assert sorted(Counter(read(name)["label"]).values()) == [30] * 5


def test_coreference_has_no_singletons_and_no_mention_in_two_clusters() -> None:
    rows = read("coreference.v4_gold_conll")
    assert len(rows) == 100
    for row in rows:
        mentions = [tuple(mention) for mention in itertools.chain(*row["clusters"])]
        assert min(map(len, row["clusters"])) > 1
        assert len(set(mentions)) == len(mentions)
        assert 3 <= len(row["sentences"]) <= 6


def test_parts_of_speech_and_roles_are_of_the_same_sentences() -> None:
    sentences = read("pos.conllu")["tokens"]
    assert len(sentences) == 300
    predicates = build({"type": "predicates", "source": READERS["roles.gold_conll"]})
    assert sentences == predicates.read(FOLDER / "roles.gold_conll")["tokens"]


def test_questions_without_an_answer_are_about_the_same_passages() -> None:
    rows, passages = read("reading_no_answer.json"), set(read("reading.json")["passage"])
    assert len(rows) == 20
    assert not any(rows["answers"])
    assert set(rows["passage"]) < passages


def test_reading_has_five_questions_about_each_passage_with_answers_in_it() -> None:
    articles = json.loads((FOLDER / "reading.json").read_text())["data"]
    passages = [passage for article in articles for passage in article["paragraphs"]]
    assert [len(passage["qas"]) for passage in passages] == [5] * 60
    for passage in passages:
        assert 80 <= len(passage["context"].split()) <= 150
        for question in passage["qas"]:
            assert question["answers"]
            for answer in question["answers"]:
                assert passage["context"].startswith(answer["text"], answer["answer_start"])


def test_inference_has_as_many_pairs_of_each_class() -> None:
    assert Counter(read("inference.jsonl")["label"]) == {"entailment": 100, "neutral": 100, "contradiction": 100}
