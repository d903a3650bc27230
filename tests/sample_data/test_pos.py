"""The sample data for parts of speech: its format, its ambiguity, that it is the same every time."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any, Literal

import pytest

from elmo_tasks.data_readers.conllu import ConlluConfig
from elmo_tasks.files.text import read_lines
from elmo_tasks.sample_data.pos import POS

FILES = ("en_ewt-ud-train.conllu.xz", "en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    assert POS.write(folder, 13, (400, 50, 30)) == [folder / "pos_ud_ewt" / name for name in FILES]
    return folder


def read(folder: Path, file: str, column: Literal["upos", "xpos"] = "xpos") -> list[dict[str, Any]]:
    return ConlluConfig(tag_column=column).build().read(folder / "pos_ud_ewt" / file).to_list()


def test_sizes_and_documents(folder: Path) -> None:
    assert [len(read(folder, file)) for file in FILES] == [400, 50, 30]
    assert read(folder, FILES[0])[-1]["document"] == 39
    assert collections.Counter(example["document"] for example in read(folder, FILES[1])) == dict.fromkeys(range(5), 10)


def test_words_of_several_parts_of_speech_are_many(folder: Path) -> None:
    tags: dict[str, set[str]] = collections.defaultdict(set)
    for example in read(folder, FILES[0]):
        for token, tag in zip(example["tokens"], example["tags"], strict=True):
            tags[token].add(tag)
    assert tags["cut"] == {"NN", "VB", "VBP", "VBD", "VBN", "JJ"}
    assert tags["watch"] == {"NN", "VB", "VBP"}
    assert tags["that"] == {"IN", "DT", "WDT"}
    assert tags["her"] == {"PRP", "PRP$"}
    assert tags["painted"] == {"VBD", "VBN", "JJ"}
    assert tags["watches"] == {"NNS", "VBZ"}


def test_universal_tags_are_there_too(folder: Path) -> None:
    for example, universal in zip(read(folder, FILES[0]), read(folder, FILES[0], "upos"), strict=True):
        assert example["tokens"] == universal["tokens"]
    found = {tag for example in read(folder, FILES[0], "upos") for tag in example["tags"]}
    assert found >= {"NOUN", "VERB", "AUX", "PART", "DET", "PRON", "ADP", "SCONJ"}


def test_ranges_and_texts_are_as_written(folder: Path) -> None:
    lines = [line for _, line in read_lines(folder / "pos_ud_ewt" / FILES[0])]
    ranges = [line.split("\t") for line in lines if "-" in line.split("\t")[0] and not line.startswith("#")]
    assert {fields[1].lower() for fields in ranges} == {"don't", "didn't"}
    assert all(fields[2:] == ["_"] * 8 for fields in ranges)
    texts = [line for line in lines if line.startswith("# text = ")]
    assert len(texts) == 400
    assert not any(" ." in text or " n't" in text or "  " in text for text in texts)


def test_names_of_test_and_dev_are_unseen_in_training(folder: Path) -> None:
    names = [
        {
            token
            for example in read(folder, file)
            for token, tag in zip(example["tokens"], example["tags"], strict=True)
            if tag == "NNP" and token != "Monday"
        }
        for file in FILES
    ]
    assert all(len(found) > 15 for found in names)
    assert not names[0] & names[1]
    assert not names[0] & names[2]
    assert not names[1] & names[2]


def test_the_seed_decides_everything(folder: Path, tmp_path: Path) -> None:
    POS.write(tmp_path / "same", 13, (400, 50, 30))
    POS.write(tmp_path / "other", 14, (400, 50, 30))
    for file in FILES:
        assert read(tmp_path / "same", file) == read(folder, file)
        assert read(tmp_path / "other", file) != read(folder, file)


def test_the_corpus_is_about_the_names_of_all_files(folder: Path) -> None:
    words = {token for sentence in POS.corpus(13) for token in sentence}
    for file in FILES:
        names = {
            token
            for example in read(folder, file)
            for token, tag in zip(example["tokens"], example["tags"], strict=True)
            if tag == "NNP"
        }
        assert names <= words
