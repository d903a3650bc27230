"""Semantic roles in both formats: golden files, folders, every error with its place, the real data, batches."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pydantic
import pytest

from elmo_tasks.data_readers.reader import PLACE_FEATURES, DatasetReaderConfig
from elmo_tasks.data_readers.srl import (
    SrlConll2005Config,
    SrlConll2012Config,
    SrlReader,
)
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import SemanticRoles

CONLL_2012 = """\
#begin document (nw/fen_0001); part 002
d 2 0 Rain  NN  * rain - 2 - * -

d 2 0 Mira  NNP * -    -  - - * (ARG0*)       *        -
d 2 1 gave  VBD * give 01 - - * (V*           *        -
d 2 2 up    RP  * -    -  - - * *)            *        -
d 2 3 deep  JJ  * -    -  - - * (ARG1*        (ARGM-MNR*) -
d 2 4 diving NN * dive 02 - - * *)            (V*)     -

#end document
#begin document (nw/fen_0002); part 000
d 0 0 Oaks  NNS * -    -  - - * (C-ARG1*) -
d 0 1 grow  VBP * grow 01 - - * (V*)      -

#end document
"""
EXAMPLES_2012 = [
    {
        "tokens": ["Mira", "gave", "up", "deep", "diving"],
        "predicate": 1,
        "lemma": "give",
        "tags": ["B-ARG0", "B-V", "I-V", "B-ARG1", "I-ARG1"],
        "document": "nw/fen_0001; part 002",
        "sentence": 1,
        "file": 0,
        "line": 4,
    },
    {
        "tokens": ["Mira", "gave", "up", "deep", "diving"],
        "predicate": 4,
        "lemma": "dive",
        "tags": ["O", "O", "O", "B-ARGM-MNR", "B-V"],
        "document": "nw/fen_0001; part 002",
        "sentence": 1,
        "file": 0,
        "line": 4,
    },
    {
        "tokens": ["Oaks", "grow"],
        "predicate": 1,
        "lemma": "grow",
        "tags": ["B-C-ARG1", "B-V"],
        "document": "nw/fen_0002; part 000",
        "sentence": 2,
        "file": 0,
        "line": 12,
    },
]

WORDS = "Mira\nlikes\ndiving\n\nRain\n\nShe\nsank\n"
PROPS = "- (A0*) (A0*)\nlike (V*) *\ndive (A1*) (V*)\n\n-\n\n- (A1*)\nsink (V*)\n"
EXAMPLES_2005: list[dict[str, Any]] = [
    {"tokens": ["Mira", "likes", "diving"], "predicate": 1, "lemma": "like", "tags": ["B-A0", "B-V", "B-A1"]},
    {"tokens": ["Mira", "likes", "diving"], "predicate": 2, "lemma": "dive", "tags": ["B-A0", "O", "B-V"]},
    {"tokens": ["She", "sank"], "predicate": 1, "lemma": "sink", "tags": ["B-A1", "B-V"]},
]
for example, (sentence, line) in zip(EXAMPLES_2005, ((0, 1), (0, 1), (2, 7)), strict=True):
    example |= {"document": None, "sentence": sentence, "file": 0, "line": line}


def paste(words: str, props: str, between: str = "") -> str:
    pairs = zip(words.splitlines(), props.splitlines(), strict=True)
    return "".join(f"{word} {between}{prop}\n" if word else "\n" for word, prop in pairs)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write_pair(folder: Path, name: str, words: str = WORDS, props: str = PROPS) -> Path:
    write(folder / "words" / f"{name}.words", words)
    write(folder / "props" / f"{name}.props", props)
    return folder


def read(reader: SrlReader, path: Path) -> list[dict[str, Any]]:
    return list(reader.examples(path))


def test_conll_2012(tmp_path: Path) -> None:
    dataset = SrlConll2012Config().build().read(write(tmp_path / "data.conll", CONLL_2012))
    assert dataset.to_list() == EXAMPLES_2012
    assert dataset.features == {**SemanticRoles.features, **PLACE_FEATURES}


def test_sentences_without_a_predicate_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "data.conll", CONLL_2012)
    reader = SrlConll2012Config().build()
    assert [len(sentence.predicates) for sentence in reader.sentences(path)] == [0, 2, 1]
    with caplog.at_level("INFO", logger="elmo_tasks"):
        read(reader, path)
    assert "3 sentences, 1 of them without a predicate" in caplog.text


def test_a_folder_is_one_data_set_whose_content_counts(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write(folder / "b" / "2.v4_gold_conll", CONLL_2012)
    write(folder / "a" / "1.v4_gold_conll", CONLL_2012.replace("Mira", "Nora"))
    reader = SrlConll2012Config().build()
    dataset = reader.read(folder)
    assert [tokens[0] for tokens in dataset["tokens"]] == ["Nora", "Nora", "Oaks", "Mira", "Mira", "Oaks"]
    assert dataset["sentence"][:] == [1, 1, 2, 4, 4, 5]
    write(folder / "b" / "2.v4_gold_conll", CONLL_2012.replace("Mira", "Vera"))
    assert reader.read(folder)["tokens"][3][0] == "Vera"


def test_a_document_with_a_wrong_border_is_skipped_and_the_next_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "data.conll", CONLL_2012.replace("(nw/fen_0001)", "nw/fen_0001"))
    (example,) = SrlConll2012Config(on_error="skip").build().read(path).to_list()
    assert (example["tokens"], example["sentence"]) == (["Oaks", "grow"], 0)
    with pytest.raises(DataError, match=r"data\.conll:1: '#begin document nw/fen_0001"):
        SrlConll2012Config().build().read(path)


def test_where_framesets_are_missing_the_predicate_is_where_its_span_begins(tmp_path: Path) -> None:
    path = write(tmp_path / "data.conll", CONLL_2012.replace("dive 02", "dive - "))
    assert read(SrlConll2012Config().build(), path) == EXAMPLES_2012


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("(ARGM-MNR*)", "(ARGM-MNR*", 8, "'(V*)' opens a span inside the span (ARGM-MNR* of token 3"),
        ("*)            (V*)", "*             (V*)", 7, "the span (ARG1* is never closed in its sentence"),
        ("up    RP  *", "up    *", 6, "13 column(s); wanted 14 as in line 4"),
        (
            "dive 02 - - * *)            (V*)",
            "dive - - - * *) *",
            4,
            "2 column(s) of roles for 1 token(s) with a frame",
        ),
        ("grow 01 - - * (V*)      -", "grow 01 - - * -", 13, "12 column(s); wanted 13 as in line 12"),
    ],
)
def test_errors_of_conll_2012_name_file_and_line(tmp_path: Path, old: str, new: str, line: int, problem: str) -> None:
    assert old in CONLL_2012
    path = write(tmp_path / "deep" / "data.conll", CONLL_2012.replace(old, new))
    with pytest.raises(DataError) as caught:
        SrlConll2012Config().build().read(tmp_path)
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


def test_conll_2005_in_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "data.txt", paste(WORDS, PROPS))
    assert SrlConll2005Config().build().read(path).to_list() == EXAMPLES_2005


def test_conll_2005_with_columns_between(tmp_path: Path) -> None:
    path = write(tmp_path / "data.txt", paste(WORDS, PROPS, between="NN (S* * "))
    assert read(SrlConll2005Config(columns=(0, 4)).build(), path) == EXAMPLES_2005


def test_conll_2005_as_distributed(tmp_path: Path) -> None:
    write_pair(tmp_path, "train.03", "He\n\n", "-\n\n")
    write_pair(tmp_path, "train.02")
    zipped = tmp_path / "words" / "train.02.words"
    zipped.with_suffix(".words.gz").write_bytes(gzip.compress(zipped.read_bytes()))
    zipped.unlink()
    reader = SrlConll2005Config().build()
    assert [file.name for file in reader.files(tmp_path)] == [
        "train.02.words.gz",
        "train.02.props",
        "train.03.words",
        "train.03.props",
    ]
    assert reader.read(tmp_path).to_list() == [{**example, "file": 1} for example in EXAMPLES_2005]
    assert [sentence.tokens for sentence in reader.sentences(tmp_path)][-1] == ["He"]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("Rain\n", 1, "1 column(s); wanted at least 2: 'Rain'"),
        ("a - *\nb x\n", 2, "2 column(s); wanted 3 as in line 1: 'b x'"),
        ("a -\n\na -\nb x\n", 3, "0 column(s) of roles for 1 predicate(s) in the column of lemmas"),
        (PROPS, 1, "1 column(s) of roles for 3 predicate(s) in the column of lemmas"),  # without words
        ("a - (A0*\nb x (V*)\n", 2, "'(V*)' opens a span inside the span (A0* of token 0"),
        ("a - *)\nb x (V*)\n", 1, "'*)' closes a span, but none is open"),
    ],
)
def test_errors_of_conll_2005_name_file_and_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = write(tmp_path / "data.txt", text)
    with pytest.raises(DataError) as caught:
        SrlConll2005Config().build().read(path)
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


@pytest.mark.parametrize(
    ("words", "props", "file", "problem"),
    [
        (WORDS + "\nagain\n", PROPS, "words/x.words", ":10: one more sentence than {folder}/props/x.props"),
        (WORDS, PROPS + "\n-\n", "props/x.props", ":10: one more sentence than {folder}/words/x.words"),
        (
            WORDS.replace("Rain\n", "Rain\nfell\n"),
            PROPS,
            "props/x.props",
            ":5: the sentence has 1 token(s); wanted 2 as in {folder}/words/x.words:5",
        ),
        (WORDS, PROPS.replace("sink (V*)", "sink (V*"), "props/x.props", ":8: the span (V* is never closed"),
    ],
)
def test_words_and_props_that_do_not_fit(tmp_path: Path, words: str, props: str, file: str, problem: str) -> None:
    write_pair(tmp_path, "x", words, props)
    with pytest.raises(DataError) as caught:
        SrlConll2005Config().build().read(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / file}{problem.format(folder=tmp_path)}")


def test_a_folder_that_is_not_as_distributed(tmp_path: Path) -> None:
    reader = SrlConll2005Config().build()
    with pytest.raises(DataError, match=r"no file words/NAME\.words; wanted a folder with words and props"):
        reader.read(tmp_path)
    write_pair(tmp_path, "a")
    alone = write(tmp_path / "words" / "b.words", WORDS)
    with pytest.raises(DataError) as caught:
        reader.read(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: {alone} has no counterpart; wanted b.words in words, b.props")
    alone.rename(tmp_path / "props" / "b.props")
    with pytest.raises(DataError, match=r"props/b\.props has no counterpart"):
        reader.read(tmp_path)
    write(tmp_path / "words" / "c.words", WORDS)
    with pytest.raises(DataError, match=r"props/b\.props has no counterpart"):  # the first of them
        reader.read(tmp_path)
    with pytest.raises(DataError, match="absent: no such file"):
        reader.read(tmp_path / "absent")


def test_config() -> None:
    config = DatasetReaderConfig.model_validate_json('{"type": "srl_conll2005", "columns": [0, 5]}')
    assert config == SrlConll2005Config(columns=(0, 5))
    assert DatasetReaderConfig.model_validate_json('{"type": "srl_conll2012"}') == SrlConll2012Config()
    for columns in ((2, 1), (1, 1)):
        with pytest.raises(pydantic.ValidationError, match=r"words' column \d must come before the lemmas' column 1"):
            SrlConll2005Config(columns=columns)


@pytest.mark.parametrize(
    ("name", "sentences", "predicates"),
    [
        ("ewt.dev.gold_conll", 1_968, 4_963),
        ("ewt.test.gold_conll", 2_058, 4_795),
        pytest.param("ewt.train.gold_conll.xz", 12_526, 40_429, marks=pytest.mark.slow),
    ],
)
def test_counts_of_the_real_data(data_folder: Path, name: str, sentences: int, predicates: int) -> None:
    found = list(SrlConll2012Config().build().sentences(data_folder / "srl_ewt" / name))
    assert len(found) == sentences
    assert sum(len(sentence.predicates) for sentence in found) == predicates
    assert all(any(span.label == "V" for span in roles) for sentence in found for roles in sentence.roles)
