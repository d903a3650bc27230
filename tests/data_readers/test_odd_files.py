"""Files of odd but real shape, in `odd_files` and below: what readers of columns, tables and lines make of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import DataError
from tests.data_readers.readers import (
    CONLLU,
    COREF,
    END,
    HEAD,
    LINES,
    NER,
    ODD_FILES,
    PREDICATES,
    ROLES,
    SNLI,
    SST,
    TABLE,
    TEXTS,
    Settings,
    build,
    check_columns,
    read,
    read_text,
    tokens,
)

WORDS: Settings = {"type": "delimited", "task": "tagging", "columns": {"tokens": "Word", "tags": "Tag"}}


def conll_2012(*rows: str) -> str:
    """A document of one sentence, from rows with the cells of CoNLL-2012 between slashes."""
    return HEAD + "".join(row.replace("/", "\t") + "\n" for row in rows) + "\n" + END


@pytest.mark.parametrize(
    ("name", "settings", "sentences"),
    [
        ("docname_space.conll", COREF, [["I", "left"]]),
        ("speaker_tab.conll", COREF, [["I", "left"], ["You", "left"]]),
        ("id_space.tsv", {**NER, "columns": [1, -1]}, [["Mary", "left"], ["Oslo", "slept"]]),
        ("cr.txt", NER, [["Mary", "sleeps"], ["Oslo"]]),
        ("trail.txt", NER, [["Mary", "sleeps", "Oslo"]]),
        ("bominside.txt", NER, [["Mary", "sleeps"], ["Oslo", "is"]]),
        ("docstart.tsv", TABLE, [["Mary", "left"]]),
        ("srl_missing_frameset.conll", ROLES, [["Orla", "gave", "running", "up"]] * 2),
    ],
)
def test_files(name: str, settings: Settings, sentences: list[list[str]]) -> None:
    assert tokens(read(ODD_FILES / name, settings)) == sentences


@pytest.mark.parametrize("word", ["Mary left", "Mary", "\ufeffMary"])
def test_columns_of_conll_2012_are_split_at_tabs(word: str, tmp_path: Path) -> None:
    text = conll_2012(f"a b/0/0/{word}/NN/*/-/-/-/-/*/-")
    for end in ("", "\t "):
        examples = read_text(tmp_path, text.replace("-\n", f"-{end}\n"), COREF)
        assert tokens(examples) == [[word.removeprefix("\ufeff")]]


def test_speakers_with_a_space() -> None:
    (example,) = read(ODD_FILES / "speaker_tab.conll", COREF)
    assert example["speakers"] == [["Person A"] * 2, ["Person B"] * 2]


TAGGED: Settings = {"type": "jsonl", "task": "tagging"}
REST = "_\t_\t_\t_\t_\n"
ROLE = "a b\t0\t0\tMary\tNN\t*\tgo\t01\t-\tA B\t*\t(V*)\t-\n"
BORDERS: dict[str, list[Any]] = {"tokens": ["Mary", "Oslo", "left"], "document": [0, 1, 1], "sentence": [0, 0, 1]}
# The reader, a text, and columns of its examples; lists are joined by spaces
CASES: list[tuple[Settings, str, dict[str, list[Any]]]] = [
    # Cells of lines with and without tabs
    (NER, "New York\tNNP\tB-LOC\n", {"tokens": ["New York"], "tags": ["U-LOC"]}),
    (NER, " Mary \t NNP\t B-PER \t\nsleeps\t\tO\n", {"tokens": ["Mary sleeps"], "tags": ["U-PER O"]}),
    (NER | {"columns": [1, 2]}, "\tMary\tB-PER\n", {"tokens": ["Mary"], "tags": ["U-PER"]}),
    (NER, "10\u00a0000\tO\n5\u00a0% O\n", {"tokens": ["10\u00a0000 5\u00a0%"], "tags": ["O O"]}),
    (NER, "Mary   NNP  B-PER \t \n", {"tokens": ["Mary"], "tags": ["U-PER"]}),
    (ROLES, f"{HEAD}{ROLE}\n{END}", {"tokens": ["Mary"]}),
    (PREDICATES, f"{HEAD}{ROLE}\n{END}", {"tokens": ["Mary"]}),
    # Lines that end in CR; the second file was joined from two
    (NER, "Mary O\r\rsleeps O\n", {"tokens": ["Mary", "sleeps"]}),
    (SST, "(3 (2 It) (3 works))\r(1 No)\n", {"tokens": ["It works", "No"]}),
    (TEXTS, 'text,label\n"Good\r\rfilm",1\n', {"tokens": ["Good film"], "line": [2]}),
    # White space after a label
    (NER, "Mary B-PER\u2003\nsleeps\tO\u00a0\u3000\n", {"tags": ["U-PER O"]}),
    (NER | {"columns": [0, 1]}, "Mary\tB-PER\u00a0\tX\n", {"tags": ["U-PER"]}),
    (TABLE, "Mary\tB-PER\u00a0\nsleeps\tO\ufeff\n", {"tags": ["B-PER O"]}),
    (CONLLU, "1\tMary\t_\tX\u00a0\t_\t" + REST, {"tags": ["X"]}),
    (TEXTS, 'text,label\nGood.,"1\u00a0"\n', {"label": ["1"]}),
    (LINES, '{"text": "Good.", "label": "good\u2003\\ufeff"}\n', {"label": ["good"]}),
    (TAGGED, '{"tokens": ["Mary"], "tags": ["X\u00a0"]}\n', {"tags": ["X"]}),
    (SNLI, '{"gold_label": "neutral\u00a0", "sentence1": "A.", "sentence2": "B."}\n', {"label": ["neutral"]}),
    (SST, "(3\u00a0 (2 It) (3\u00a0 works))\u00a0\n", {"label": ["positive"]}),
    # Truth values, which tags are not
    (LINES, '{"text": "a", "label": "TRUE"}\n{"text": "b", "label": false}\n', {"label": ["true", "false"]}),
    (TAGGED, '{"tokens": ["Mary"], "tags": ["TRUE"]}\n', {"tags": ["TRUE"]}),
    # Byte order marks are not part of tokens
    (NER, "\ufeffMary\ufeff O\n", {"tokens": ["Mary"]}),
    (TABLE, "\n\ufeffMary\tO\n", {"tokens": ["Mary"]}),
    (CONLLU, "1\tMa\ufeffry\t_\tX\t_\t" + REST, {"tokens": ["Mary"]}),
    (SST, "\n\ufeff(\ufeff3 Mary)\n", {"tokens": ["Mary"]}),
    (TEXTS, "text,label\n\ufeffMary,1\n", {"tokens": ["Mary"]}),
    (LINES, '{"text": "\\ufeffMary", "label": 1}\n', {"tokens": ["Mary"]}),
    (LINES, '\n\ufeff{"text": ["Mary\\ufeff"], "label": 1}\n', {"tokens": ["Mary"]}),
    (TAGGED, '{"tokens": "\\ufeffMary", "tags": "X"}\n', {"tokens": ["Mary"]}),
    # Borders of documents
    (TABLE, "Mary\tO\n-DOCSTART-\t-X-\nOslo\tO\n\nleft\tO\n", BORDERS),
    (TABLE, "-DOCSTART-\n\nMary\tX\tO\n\n-DOCSTART-\t-X-\tO\nOslo\tX\tO\n\nleft\tX\tO\n", BORDERS),
    (NER | {"columns": [1, 2]}, "1\tMary\tO\n\n2\t-DOCSTART-\tO\n\n3\tOslo\tO\n\n4\tleft\tO\n", BORDERS),
    (TAGGED, "".join(f'{{"tokens": ["{each}"], "tags": ["O"]}}\n' for each in ("Mary", "-DOCSTART-", "Oslo", "left")),
     BORDERS),
    # A column for the sentence, and a comment within a cell in quotes
    (TABLE | {"columns": {"tokens": 1, "tags": -1, "sentence": 0}},
     "7\tMary\tO\n7\tleft\tO\n8\tOslo\tO\n\n8\tslept\tO\n7\tHello\tO\n",
     {"tokens": ["Mary left", "Oslo", "slept", "Hello"]}),
    (TEXTS | {"comment": "#"}, '# a comment\ntext,label\n"one\n# two",1\n#3,2\n', {"tokens": ["one # two"]}),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "text", "columns"), CASES, ids=[repr(case[1])[:40] for case in CASES])
def test_inputs(settings: Settings, text: str, columns: dict[str, list[Any]], tmp_path: Path) -> None:
    check_columns(tmp_path, settings, text, columns)


def test_a_column_for_the_sentence() -> None:
    settings = {**WORDS, "columns": {**WORDS["columns"], "sentence": "Sentence #"}}
    examples = read(ODD_FILES / "gmb_like.csv", settings)
    assert [len(example["tokens"]) for example in examples] == [7, 6, 6]
    assert [(example["sentence"], example["line"]) for example in examples] == [(0, 2), (1, 9), (2, 15)]


@pytest.mark.parametrize(
    ("text", "settings", "line"),
    [
        ("a O\n\n" + "word O\n" * 1001, NER, 3),
        ("a\tO\n\n" + "word\tO\n" * 1001, TABLE, 3),
        ("text,label\nShort.,1\n" + "word " * 1001 + ",0\n", TEXTS, 3),
        ('{"text": "' + "word " * 1001 + '", "label": 1}\n', LINES, 1),
        ('{"gold_label": "neutral", "sentence1": "A.", "sentence2": "' + "b " * 1001 + '"}\n', SNLI, 1),
        (conll_2012(*(f"d/0/{number}/a/NN/*/-/-/-/-/*/-" for number in range(1001))), COREF, 2),
        (conll_2012("d/0/0/a/NN/*/go/01/-/-/*/(V*)/-", *["d/0/1/a/NN/*/-/-/-/-/*/*/-"] * 1000), ROLES, 2),
    ],
)
def test_a_sentence_that_is_too_long(
    text: str, settings: Settings, line: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_text(tmp_path, text, settings)
    (message,) = caplog.messages
    assert message.startswith(str(tmp_path))
    assert f":{line}: a sentence of 1,001 tokens. Real sentences are shorter" in message
    caplog.clear()
    read_text(tmp_path, text.replace("word O\n", "", 1), settings)
    assert len(caplog.messages) == (settings is not NER)


def test_a_sentence_in_memory_that_is_too_long(caplog: pytest.LogCaptureFixture) -> None:
    example = {"sentences": [["b"], ["a"] * 1001, ["a"] * 1002], "clusters": []}
    build(COREF).read([example])
    expected = "row 0: a sentence of 1,001 tokens (sentence 2 of the example) (and 1 more like it). Real"
    assert expected in caplog.text


def test_long_passages_are_no_sentences(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers = [{"text": "word", "answer_start": 0}]
    row = {"question": "What?", "passage": "word " * 3000, "answers": answers}
    read_text(tmp_path, json.dumps(row), {"type": "jsonl", "task": "reading"})
    assert caplog.messages == []


GERMEVAL = {**TABLE, "columns": {"tokens": 1, "tags": 2}}
LABELLED = {**TEXTS, "header": False, "columns": {"text": 0, "label": 1}}
PAIRS = {**LABELLED, "task": "text_pairs", "columns": {"label": 0, "premise": 1, "hypothesis": 2}}
COMMENTS = "# one\n#\ttwo\n1\tMary\tB-PER\n# three\n2\tleft\tO\n\n# four\n\n# five\n1\tOslo\tB-LOC\n"


@pytest.mark.parametrize("settings", [{**NER, "columns": [1, 2], "tag_scheme": "IOB2"}, GERMEVAL])
def test_comments(settings: Settings, tmp_path: Path) -> None:
    examples = read(ODD_FILES / "germeval_like.tsv", {**settings, "comment": "#"})
    assert [(len(example["tokens"]), example["line"]) for example in examples] == [(6, 2), (2, 10)]
    examples = read_text(tmp_path, COMMENTS, {**settings, "comment": "#"})
    assert [(example["tokens"], example["line"]) for example in examples] == [(["Mary", "left"], 3), (["Oslo"], 10)]
    with pytest.raises(DataError, match=r"data\.txt:3, token 1: 'LOC' is not a tag"):
        read_text(tmp_path, COMMENTS.replace("\tO\n", "\tLOC\n"), {**settings, "comment": "#", "tag_scheme": "IOB2"})


@pytest.mark.parametrize(
    ("text", "settings", "warns"),
    [
        ("word tag\nMary NNP\n", {**NER, "tag_scheme": None}, True),
        ("Token\tPOS\n\nMary\tNNP\n", TABLE, True),
        ("text\tlabel\nGood.\t1\n", LABELLED, True),
        ("gold_label\tsentence1\tsentence2\nneutral\tA.\tB.\n", PAIRS, True),
        ("Word NNP\nMary NNP\n", {**NER, "tag_scheme": None}, False),
        ("text\t1\nlabel\t2\n", LABELLED, False),
    ],
)
def test_a_header_row_that_is_read_as_data(
    text: str, settings: Settings, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_text(tmp_path, text, settings)
    expected = f"{tmp_path / 'data.txt'}:1: what looks like the names of columns is read as data"
    assert [message.startswith(expected) for message in caplog.messages] == [True] * warns
