"""The sample data for semantic roles: its format, and that no word shows its role."""

from __future__ import annotations

import collections
from pathlib import Path

from elmo_tasks.data_readers.conll2012 import read_conll2012
from elmo_tasks.data_readers.ner_conll2012 import NerConll2012Config
from elmo_tasks.data_readers.predicates import PredicatesConfig
from elmo_tasks.data_readers.srl import SrlConll2005Config, SrlConll2012Config
from elmo_tasks.sample_data.srl import SRL, SRL_PROPS, SRL_WORDS
from elmo_tasks.text.tag_schemes import spans_of_tags
from tests.sample_data.every import EWT, file, read, read_file, write_files


def test_sizes_and_documents() -> None:
    documents = list(read_conll2012(file("srl")))
    assert [len(document.sentences) for document in documents] == [10] * 50
    predicates = [len(sentence.predicates) for document in documents for sentence in document.sentences]
    assert set(predicates) == {0, 1, 2, 3}
    assert len(read("srl")) == sum(predicates) > 500


def test_the_predicate_is_the_verb_of_its_frame() -> None:
    for example in read("srl"):
        verbs = [span for span in spans_of_tags(example["tags"]) if span.label == "V"]
        assert [(span.start, span.end) for span in verbs] == [(example["predicate"], example["predicate"])]
        assert example["lemma"]


def test_all_roles_are_there() -> None:
    counts = collections.Counter(span.label for example in read("srl") for span in spans_of_tags(example["tags"]))
    numbered = {"ARG0", "ARG1", "ARG2", "ARG4", "R-ARG0", "R-ARG1", "C-ARG1"}
    assert set(counts) == {"V", *numbered, "ARGM-TMP", "ARGM-LOC", "ARGM-MOD", "ARGM-NEG"}
    assert min(counts.values()) >= 10


def test_neither_words_nor_places_tell_the_role() -> None:
    first_role: dict[str, set[str]] = collections.defaultdict(set)
    by_role: dict[str, set[str]] = collections.defaultdict(set)
    for example in read("srl"):
        spans = spans_of_tags(example["tags"])
        before = [span.label for span in spans if span.end < example["predicate"]]
        if before:
            first_role[example["lemma"]].add(before[0])
        for span in spans:
            if example["tokens"][span.start] == "by":
                by_role["by"].add(span.label)
    assert {"ARG0", "ARG1"} <= first_role["ring"]
    assert {"ARG0", "ARG1"} <= first_role["open"]
    assert by_role["by"] == {"ARG0", "ARGM-LOC"}


def test_some_words_are_predicates_here_and_none_there() -> None:
    found: dict[str, set[bool]] = collections.defaultdict(set)
    reader = PredicatesConfig(source=SrlConll2012Config()).build()
    for example in reader.read(file("srl")):
        for token, tag in zip(example["tokens"], example["tags"], strict=True):
            found[token].add(tag == "B-V")
    assert {word for word, kinds in found.items() if len(kinds) == 2} >= {"watch", "turn", "ring", "closed", "broken"}


def test_one_sentence_is_enough_for_an_example(tmp_path: Path) -> None:
    for seed in range(10):
        write_files(SRL, tmp_path, seed, (1, 1, 1))
        for name in EWT:
            (document,) = read_conll2012(tmp_path / name)
            assert len(document.sentences) == 1
            assert len(read_file("srl", tmp_path / name)) >= 1


def test_the_same_sentences_in_the_form_of_2005(tmp_path: Path) -> None:
    for task in (SRL, SRL_WORDS, SRL_PROPS):
        write_files(task, tmp_path, 13, (30, 1, 1))
    then = SrlConll2005Config().build().read(tmp_path / "conll05st-release" / "train")
    now = read_file("srl", tmp_path / EWT[0])
    assert len(then) == len(now) > 20
    for example, other in zip(then, now, strict=True):
        assert example["tokens"] == other["tokens"]
        assert example["predicate"] == other["predicate"]
        assert example["lemma"] == other["lemma"]
        assert example["tags"] == [tag.replace("ARG", "A") for tag in other["tags"]]


def test_entities(tmp_path: Path) -> None:
    write_files(SRL, tmp_path, 13, (100, 1, 1))
    examples = NerConll2012Config().build().read(tmp_path / EWT[0])
    spans = [(each["tokens"], span) for each in examples for span in spans_of_tags(each["tags"])]
    assert {span.label for _, span in spans} == {"PERSON", "GPE", "LOC", "DATE"}
    assert all(tokens[span.end] == "Bay" for tokens, span in spans if span.label == "LOC")
