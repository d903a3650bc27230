"""The real data has as many examples, labels, spans and so on as its publishers say."""

from collections import Counter
from pathlib import Path

import pytest

from elmo_tasks.data_readers import Parsing
from elmo_tasks.data_readers.conll2012 import read_conll2012
from elmo_tasks.data_readers.srl import SrlConll2012Config
from elmo_tasks.tasks.reading import character_span
from elmo_tasks.text.tag_schemes import spans_of_tags
from tests.data_readers.readers import CONLLU, COREF, NER, SNLI, SQUAD, SST, build


@pytest.mark.parametrize(
    ("name", "sentences", "tokens", "entities", "documents"),
    [
        pytest.param("eng.testa", 3_250, 51_362, 5_942, 216, marks=pytest.mark.slow),
        ("eng.testb", 3_453, 46_435, 5_648, 231),
    ],
)
def test_conll_2003(data_folder: Path, name: str, sentences: int, tokens: int, entities: int, documents: int) -> None:
    dataset = build(NER).read(data_folder / "ner_conll2003" / name)
    assert len(dataset) == sentences
    assert sum(map(len, dataset["tokens"])) == tokens
    assert sum(len(spans_of_tags(tags)) for tags in dataset["tags"]) == entities
    assert len(set(dataset["document"])) == documents


@pytest.mark.parametrize(
    ("name", "sentences", "tokens"),
    [("dev.conllu", 2_001, 25_147), pytest.param("test.conllu", 2_077, 25_094, marks=pytest.mark.slow)],
)
def test_english_ewt(data_folder: Path, name: str, sentences: int, tokens: int) -> None:
    path = data_folder / "pos_ud_ewt" / f"en_ewt-ud-{name}"
    lengths = [len(example["tokens"]) for example in build(CONLLU).examples(path, Parsing())]
    assert (len(lengths), sum(lengths)) == (sentences, tokens)


@pytest.mark.parametrize(
    ("name", "documents", "mentions"),
    [
        pytest.param("dev.v4_gold_conll", 30, 3_818, marks=pytest.mark.slow),
        pytest.param("test.v4_gold_conll", 30, 3_581, marks=pytest.mark.slow),
        ("test2.v4_gold_conll", 26, 1_909),
    ],
)
def test_ontogum(data_folder: Path, name: str, documents: int, mentions: int) -> None:
    path = data_folder / "coref_ontogum" / f"ontogum.{name}"
    assert len({document.name for document in read_conll2012(path)}) == documents
    found = build(COREF).read(path)
    assert len(found) == documents
    assert sum(len(cluster) for example in found for cluster in example["clusters"]) == mentions
    assert all(example["document"].startswith(f"{example['genre']}/") for example in found)


@pytest.mark.parametrize(
    ("name", "sentences", "predicates"),
    [
        ("ewt.dev.gold_conll", 1_968, 4_963),
        pytest.param("ewt.test.gold_conll", 2_058, 4_795, marks=pytest.mark.slow),
    ],
)
def test_semantic_roles(data_folder: Path, name: str, sentences: int, predicates: int) -> None:
    found = list(SrlConll2012Config().build().sentences(data_folder / "srl_ewt" / name, Parsing()))
    assert len(found) == sentences
    assert sum(len(sentence.predicates) for sentence in found) == predicates
    assert all(any(span.label == "V" for span in roles or ()) for sentence in found for roles in sentence.roles)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sentences", "not_neutral", "nodes"),
    [("dev", 1_101, 872, 41_447), ("test", 2_210, 1_821, 82_600)],
)
def test_sst(data_folder: Path, name: str, sentences: int, not_neutral: int, nodes: int) -> None:
    path = data_folder / "sst5" / f"{name}.txt"
    labels = [example["label"] for example in build(SST).examples(path, Parsing())]
    assert len(labels) == sentences
    assert sum(label != "neutral" for label in labels) == not_neutral
    phrases = [example["tokens"] for example in build(SST | {"subtrees": True}).examples(path, Parsing())]
    assert len(phrases) == nodes
    assert not any(token in ("-LRB-", "-RRB-", "``", "''") or "\\" in token for each in phrases for token in each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "entailment", "neutral", "contradiction"),
    [("dev", 3_329, 3_235, 3_278), ("test", 3_368, 3_219, 3_237)],
)
def test_snli(data_folder: Path, name: str, entailment: int, neutral: int, contradiction: int) -> None:
    dataset = build(SNLI).read(data_folder / "snli" / f"snli_1.0_{name}.jsonl")
    counts = Counter(dataset["label"])
    assert counts == {"entailment": entailment, "neutral": neutral, "contradiction": contradiction}
    # Whether the file is tokenized or raw, the periods of the examples are tokens, except those of abbreviations.
    last = [tokens[-1] for tokens in dataset["premise"]]
    assert sum(token == "." for token in last) > 0.8 * len(last)
    assert sum(len(token) > 1 and token.endswith(".") for token in last) < 0.001 * len(last)


@pytest.mark.slow
def test_squad(data_folder: Path) -> None:
    dataset = build(SQUAD).read(data_folder / "squad" / "dev-v1.1.json")
    assert len(dataset) == len(set(dataset["id"])) == 10_570
    assert len(set(dataset["passage"])) == 2_067
    pairs = [
        (example["passage"][slice(*character_span(example, *span))], answer)
        for example in dataset
        for span, answer in zip(example["answer_spans"], example["answers"], strict=True)
    ]
    differing = [(text, answer) for text, answer in pairs if text != answer]
    assert len(differing) == 330
    assert all(answer in text for text, answer in differing)
