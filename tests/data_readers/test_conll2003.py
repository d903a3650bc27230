"""The CoNLL-2003 reader: golden files, every error with its place, the real data's counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest

from elmo_tasks.data_readers import Conll2003Config, DatasetReaderConfig
from elmo_tasks.data_readers.reader import PLACE_FEATURES
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import spans_of_tags

GOLDEN = """\
-DOCSTART- -X- O O

Mira NNP I-NP I-PER
Oak NNP I-NP I-PER
visited VBD I-VP O
New NNP I-NP I-LOC
Fenwick NNP I-NP I-LOC
Delta NNP B-NP B-LOC

Rain NN I-NP O

-DOCSTART- -X- O O

-DOCSTART- -X- O O

The DT I-NP O
Fenwickian JJ I-NP I-MISC
Cup NNP I-NP B-MISC
"""
GOLDEN_TAGS = {
    "BIOUL": [
        ["B-PER", "L-PER", "O", "B-LOC", "L-LOC", "U-LOC"],
        ["O"],
        ["O", "U-MISC", "U-MISC"],
    ],
    "IOB2": [
        ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "B-LOC"],
        ["O"],
        ["O", "B-MISC", "B-MISC"],
    ],
}


def write(folder: Path, text: str, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, **settings: Any) -> list[dict[str, Any]]:
    return list(Conll2003Config(**settings).build().examples(path))


@pytest.mark.parametrize("scheme", ["BIOUL", "IOB2"])
def test_golden_file(tmp_path: Path, scheme: str) -> None:
    reader = Conll2003Config(tag_scheme=scheme).build()
    assert reader.task == Tagging(scheme)
    dataset = reader.read(write(tmp_path, GOLDEN))
    assert dataset["tokens"][:] == [
        ["Mira", "Oak", "visited", "New", "Fenwick", "Delta"],
        ["Rain"],
        ["The", "Fenwickian", "Cup"],
    ]
    assert dataset["tags"][:] == GOLDEN_TAGS[scheme]
    assert dataset["document"][:] == [0, 0, 1]
    assert dataset["sentence"][:] == [0, 1, 0]
    assert dataset["line"][:] == [3, 10, 16]
    assert dataset.features == {**Tagging.features, **PLACE_FEATURES}


@pytest.mark.parametrize("input_scheme", ["auto", "IOB2", "BIOUL", "BIOES", "BMES"])
def test_every_scheme_in_gives_the_same(tmp_path: Path, input_scheme: str) -> None:
    wanted = read(write(tmp_path, GOLDEN))
    scheme = "BIOUL" if input_scheme == "auto" else input_scheme
    lines = []
    for example in read(tmp_path / "data.txt", tag_scheme=scheme):
        lines += [f"{token} {tag}" for token, tag in zip(example["tokens"], example["tags"], strict=True)] + [""]
    again = read(write(tmp_path, "\n".join(lines), "again.txt"), input_scheme=input_scheme)
    assert [example["tags"] for example in again] == [example["tags"] for example in wanted]


def test_columns_can_be_chosen_and_separated_by_tabs(tmp_path: Path) -> None:
    path = write(tmp_path, "1\tB-LOC\tOslo\t_\n2\tO\t10\u00a0000\t_\n")
    (example,) = read(path, columns=(2, 1), tag_scheme="IOB2")
    assert example["tokens"] == ["Oslo", "10\u00a0000"]
    assert example["tags"] == ["B-LOC", "O"]


def test_tags_that_are_not_spans(tmp_path: Path) -> None:
    (example,) = read(write(tmp_path, "Oslo  NNP I-LOC\nsleeps VBZ O\n"), columns=(0, 1), tag_scheme=None)
    assert example["tags"] == ["NNP", "VBZ"]
    assert Conll2003Config(tag_scheme=None).task == Tagging()


def test_byte_order_mark_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeff\r\n \t\r\n Oslo I-LOC \t\r\n\r\n\r\nbegins O\r\n")
    assert [example["tokens"] for example in read(path)] == [["Oslo"], ["begins"]]


def test_sentences_are_numbered_within_their_document(tmp_path: Path) -> None:
    examples = read(write(tmp_path, "a O\n\nb O\n\nc O\n\n-DOCSTART- O\n\nd O\n\n-DOCSTART- O\n\ne O\n"))
    assert [(each["document"], each["sentence"]) for each in examples] == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]
    in_memory = [{"tokens": [each], "tags": ["O"]} for each in ("a", "b", "c", "-DOCSTART-", "d", "-DOCSTART-", "e")]
    again = Conll2003Config().build().read(in_memory)
    places = list(zip(again["document"], again["sentence"], strict=True))
    assert places == [(each["document"], each["sentence"]) for each in examples]


def test_sentences_before_the_first_border_are_a_document(tmp_path: Path) -> None:
    path = write(tmp_path, "Oslo I-LOC\n-DOCSTART- O\nbegins O\n")
    assert [(each["document"], each["sentence"]) for each in read(path)] == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("Oslo\n", 1, "1 column(s); wanted at least 2: 'Oslo'"),
        ("a x O\n\nb x O\nc O\n", 4, "2 column(s); wanted 3 as in line 1: 'c O'"),
        ("a O\n\nb x O\n", 3, "3 column(s); wanted 2 as in line 1: 'b x O'"),
        ("a O\nb 0\n", 2, "'0' is not a tag; wanted O or a tag such as B-LOC"),
        ("a B-LOC\nb O\nc E-LOC\n", 3, "'E-LOC' is not a tag"),
        ("a B-LOC\n\nb O\nc I-LOC\n", 4, "'I-LOC' after 'O' is not valid in IOB2 (the scheme of the first span"),
        ("a U-LOC\n\nb B-LOC\nc I-LOC\n", 4, "'I-LOC' at the end of a sentence is not valid in BIOUL"),
        ("a I-LOC\n-DOCSTART- O\nb O\nc U-LOC\n", 4, "'U-LOC' is not a tag of IOB1"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        Conll2003Config().build().read(path)
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


def test_the_scheme_that_is_set_is_kept_to(tmp_path: Path) -> None:
    path = write(tmp_path, "a O\nb I-LOC\n")
    with pytest.raises(DataError, match=r":2: 'I-LOC' after 'O' is not valid in IOB2$"):
        read(path, input_scheme="IOB2")
    assert read(path, input_scheme="IOB1")[0]["tags"] == ["O", "U-LOC"]


def test_too_few_columns_for_those_chosen(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r":1: 2 column\(s\); wanted at least 4"):
        read(write(tmp_path, "a O\n"), columns=(0, 3))
    with pytest.raises(DataError, match=r":1: 2 column\(s\); wanted at least 3"):
        read(write(tmp_path, "a O\n"), columns=(-3, -1))


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("Oslo I-LOC\nTromsø I-LOC\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"latin.txt:2: byte 0xf8 at column 6 is not UTF-8"):
        read(path)


@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART- -X- O O\n\n"])
def test_a_file_without_sentences(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="has no example"):
        Conll2003Config().build().read(write(tmp_path, text))


def test_config() -> None:
    config = DatasetReaderConfig.model_validate_json('{"type": "conll2003", "tag_scheme": "IOB2", "columns": [0, 3]}')
    assert config == Conll2003Config(tag_scheme="IOB2", columns=(0, 3))
    with pytest.raises(pydantic.ValidationError, match="cannot both be in column 1"):
        Conll2003Config(columns=(1, 1))
    with pytest.raises(pydantic.ValidationError, match="tag_scheme"):
        Conll2003Config(tag_scheme="BILOU")


@pytest.mark.parametrize(
    ("name", "sentences", "tokens", "entities", "documents"),
    [
        ("eng.train", 14_041, 203_621, 23_499, 946),
        ("eng.testa", 3_250, 51_362, 5_942, 216),
        ("eng.testb", 3_453, 46_435, 5_648, 231),
    ],
)
def test_counts_of_the_real_data(
    data_folder: Path, name: str, sentences: int, tokens: int, entities: int, documents: int
) -> None:
    dataset = Conll2003Config().build().read(data_folder / "ner_conll2003" / name)
    assert len(dataset) == sentences
    assert sum(map(len, dataset["tokens"])) == tokens
    assert sum(len(spans_of_tags(tags)) for tags in dataset["tags"]) == entities
    assert len(set(dataset["document"])) == documents
