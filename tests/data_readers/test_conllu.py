"""The CoNLL-U reader: golden file, every error with its place, the real data's counts, batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.conllu import ConlluConfig
from elmo_tasks.data_readers.reader import PLACE_FEATURES, DatasetReaderConfig
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import Tagging


def row(number: str, form: str = "_", upos: str = "_", xpos: str = "_") -> str:
    return "\t".join([number, form, "_", upos, xpos, "_", "_", "_", "_", "_"]) + "\n"


GOLDEN = (
    "# newdoc id = one\n"
    "# sent_id = 1\n"
    + row("1-2", "Don't")
    + row("1", "Do", "AUX", "VBP")
    + row("2", "n't", "PART", "RB")
    + row("3", "swim", "VERB", "VB")
    + row("3.1", "swim", "VERB", "VB")
    + row("3.2", "far", "ADV", "RB")
    + "\n"
    + row("0.1", "It", "PRON", "PRP")
    + row("1", "10 000", "NUM", "CD")
    + row("2", "_", "PUNCT", "NFP")
    + "\n\n"
    "# newdoc\n"
    "# text = #\n" + row("1", "#", "SYM", "$")
)
SENTENCES = [["Do", "n't", "swim"], ["10 000", "_"], ["#"]]
WORD = row("1", "a", "X", "FW")


def write(folder: Path, text: str = GOLDEN) -> Path:
    path = folder / "data.conllu"
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, **settings: Any) -> list[dict[str, Any]]:
    return list(ConlluConfig(**settings).build().examples(path))


@pytest.mark.parametrize(
    ("tag_column", "tags"),
    [
        ("upos", [["AUX", "PART", "VERB"], ["NUM", "PUNCT"], ["SYM"]]),
        ("xpos", [["VBP", "RB", "VB"], ["CD", "NFP"], ["$"]]),
    ],
)
def test_golden_file(tmp_path: Path, tag_column: str, tags: list[list[str]]) -> None:
    dataset = ConlluConfig(tag_column=tag_column).build().read(write(tmp_path))
    assert dataset["tokens"][:] == SENTENCES
    assert dataset["tags"][:] == tags
    assert dataset["document"][:] == [0, 0, 1]
    assert dataset["sentence"][:] == [0, 1, 0]
    assert dataset["line"][:] == [3, 10, 17]
    assert dataset.features == {**Tagging.features, **PLACE_FEATURES}


def test_a_document_without_a_comment_before_the_first_one(tmp_path: Path) -> None:
    examples = read(write(tmp_path, f"{WORD}\n# newdocument is no border\n{WORD}\n#newdoc\n{WORD}\n"))
    assert [(each["document"], each["sentence"]) for each in examples] == [(0, 0), (0, 1), (1, 0)]


def test_a_range_may_be_the_whole_sentence_or_a_single_word(tmp_path: Path) -> None:
    whole = row("1-2", "ab") + row("1", "a", "X") + row("2", "b", "Y")
    examples = read(write(tmp_path, f"{whole}\n{row('1-1', 'a')}{WORD}"))
    assert [example["tokens"] for example in examples] == [["a", "b"], ["a"]]


def test_the_border_of_a_document_may_stand_alone(tmp_path: Path) -> None:
    examples = read(write(tmp_path, f"{WORD}\n# newdoc\n\n{WORD}\n{WORD}\n"))
    assert [(each["document"], each["sentence"]) for each in examples] == [(0, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("1\ta\tX\n", 1, "3 column(s); wanted 10, separated by tabs: '1\\ta\\tX'"),
        (WORD.replace("\t", " "), 1, "1 column(s); wanted 10, separated by tabs"),
        (WORD + WORD, 2, "word 1 where word 2 was wanted; is an empty line missing?"),
        (row("2", "a", "X"), 1, "word 2 where word 1 was wanted"),
        (row("a", "a", "X"), 1, "'a' does not number a word (1), a range of words (1-2) or an empty node (1.1)"),
        (row("1-", "a", "X"), 1, "'1-' does not number"),
        (WORD + "# comment\n", 2, "a comment inside a sentence; wanted an empty line before it"),
        (WORD + row("2", "b"), 2, "word 2 ('b') has no upos"),
        (row("1", "", "X"), 1, "word 1 has no form"),
        (WORD + row("1-2", "ab"), 2, "the range 1-2; wanted one that begins at word 2, outside of others"),
        (WORD + row("2-1", "ab"), 2, "the range 2-1; wanted"),
        (row("1-3", "abc") + WORD + row("2-3", "bc"), 3, "the range 2-3; wanted"),
        (row("1-2", "ab") + WORD + row("2-3", "bc"), 3, "the range 2-3; wanted"),
        (row("1-2", "ab") + WORD + "\n", 2, "the sentence ends at word 1, but a range of words at 2"),
        (row("1-2", "ab") + WORD, 2, "the sentence ends at word 1, but a range of words at 2"),
        (WORD + row("2.1", "b"), 2, "the empty node 2.1; wanted 1.1 here"),
        (WORD + row("1.2", "b"), 2, "the empty node 1.2; wanted 1.1 here"),
        (row("0.1", "b") + "\n" + WORD, 1, "a sentence without words"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        ConlluConfig().build().read(path)
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


def test_a_treebank_without_tags_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r":1: word 1 \('a'\) has no xpos"):
        read(write(tmp_path, row("1", "a", "X")), tag_column="xpos")


def test_a_file_without_sentences(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no example"):
        ConlluConfig().build().read(write(tmp_path, "# newdoc\n\n\n"))


def test_config() -> None:
    config = DatasetReaderConfig.model_validate_json('{"type": "conllu", "tag_column": "xpos"}')
    assert config == ConlluConfig(tag_column="xpos")


@pytest.mark.parametrize("tag_column", ["upos", "xpos"])
@pytest.mark.parametrize(("name", "sentences", "tokens"), [("dev", 2_001, 25_147), ("test", 2_077, 25_094)])
def test_counts_of_the_real_data(data_folder: Path, name: str, sentences: int, tokens: int, tag_column: str) -> None:
    examples = read(data_folder / "pos_ud_ewt" / f"en_ewt-ud-{name}.conllu", tag_column=tag_column)
    assert len(examples) == sentences
    assert sum(len(example["tokens"]) for example in examples) == tokens


@pytest.mark.slow
def test_counts_of_the_real_training_data(data_folder: Path) -> None:
    assert len(read(data_folder / "pos_ud_ewt" / "en_ewt-ud-train.conllu.xz", tag_column="xpos")) == 12_544
