"""The sample data for parts of speech: its format and its ambiguity."""

from __future__ import annotations

import collections

from elmo_tasks.data_readers.conllu import ConlluConfig
from elmo_tasks.files.text import read_lines
from tests.sample_data.every import file, read


def test_documents() -> None:
    assert read("pos")[-1]["document"] == 39
    assert collections.Counter(example["document"] for example in read("pos", 1)) == dict.fromkeys(range(5), 10)


def test_words_of_several_parts_of_speech_are_many() -> None:
    tags: dict[str, set[str]] = collections.defaultdict(set)
    for example in read("pos"):
        for token, tag in zip(example["tokens"], example["tags"], strict=True):
            tags[token].add(tag)
    assert tags["cut"] == {"NN", "VB", "VBP", "VBD", "VBN", "JJ"}
    assert tags["watch"] == {"NN", "VB", "VBP"}
    assert tags["that"] == {"IN", "DT", "WDT"}
    assert tags["her"] == {"PRP", "PRP$"}
    assert tags["painted"] == {"VBD", "VBN", "JJ"}
    assert tags["watches"] == {"NNS", "VBZ"}


def test_universal_tags_are_there_too() -> None:
    universal_tags = ConlluConfig().build().read(file("pos")).to_list()
    for example, universal in zip(read("pos"), universal_tags, strict=True):
        assert example["tokens"] == universal["tokens"]
    found = {tag for example in universal_tags for tag in example["tags"]}
    assert found >= {"NOUN", "VERB", "AUX", "PART", "DET", "PRON", "ADP", "SCONJ"}


def test_ranges_and_texts_are_as_written() -> None:
    lines = [line for _, line in read_lines(file("pos"))]
    ranges = [line.split("\t") for line in lines if "-" in line.split("\t")[0] and not line.startswith("#")]
    assert {fields[1].lower() for fields in ranges} == {"don't", "didn't"}
    assert all(fields[2:] == ["_"] * 8 for fields in ranges)
    texts = [line for line in lines if line.startswith("# text = ")]
    assert len(texts) == 400
    assert not any(" ." in text or " n't" in text or "  " in text for text in texts)
