"""Files of odd but real shape, in `odd_files` and below: what readers of columns, tables and lines make of them."""

from __future__ import annotations

import json
from pathlib import Path

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
        ("id_space.tsv", {**NER, "columns": [1, -1]}, [["Mira", "left"], ["Oslo", "slept"]]),
        ("cr.txt", NER, [["Mira", "sleeps"], ["Oslo"]]),
        ("trail.txt", NER, [["Mira", "sleeps", "Oslo"]]),
        ("bominside.txt", NER, [["Mira", "sleeps"], ["Oslo", "is"]]),
        ("docstart.tsv", TABLE, [["Mira", "left"]]),
        ("srl_missing_frameset.conll", ROLES, [["Orla", "gave", "running", "up"]] * 2),
    ],
)
def test_files(name: str, settings: Settings, sentences: list[list[str]]) -> None:
    assert tokens(read(ODD_FILES / name, settings)) == sentences


def test_speakers_with_a_space() -> None:
    (example,) = read(ODD_FILES / "speaker_tab.conll", COREF)
    assert example["speakers"] == [["Person A"] * 2, ["Person B"] * 2]


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        ("a b\t0\t0\tMira left\tNN\t*\t-\t-\t-\t-\t*\t-\n", COREF, ["Mira left"]),
        ("a b\t0\t0\tMira\tNN\t*\t-\t-\t-\t-\t*\t-\t \n", COREF, ["Mira"]),
        ("a b\t0\t0\tMira\tNN\t*\tgo\t01\t-\tA B\t*\t(V*)\t-\n", ROLES, ["Mira"]),
        ("a b\t0\t0\tMira\tNN\t*\tgo\t01\t-\tA B\t*\t(V*)\t-\n", PREDICATES, ["Mira"]),
    ],
)
def test_columns_of_conll_2012_are_split_at_tabs(
    text: str, settings: Settings, words: list[str], tmp_path: Path
) -> None:
    assert tokens(read_text(tmp_path, f"{HEAD}{text}\n{END}", settings)) == [words]


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("New York\tNNP\tB-LOC\n", {}, [("New York", "U-LOC")]),
        (" Mira \t NNP\t B-PER \t\nsleeps\t\tO\n", {}, [("Mira", "U-PER"), ("sleeps", "O")]),
        ("\tMira\tB-PER\n", {"columns": [1, 2]}, [("Mira", "U-PER")]),
        ("10\u00a0000\tO\n5\u00a0% O\n", {}, [("10\u00a0000", "O"), ("5\u00a0%", "O")]),
        ("Mira   NNP  B-PER \t \n", {}, [("Mira", "U-PER")]),
    ],
)
def test_cells_of_lines_with_and_without_tabs(
    text: str, settings: Settings, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    (example,) = read_text(tmp_path, text, {**NER, **settings})
    assert list(zip(example["tokens"], example["tags"], strict=True)) == expected


@pytest.mark.parametrize(
    ("text", "settings", "count"),
    [
        (conll_2012("d/0/0/I/NN/*/-/-/-/-/*/-").replace("\n", "\r"), COREF, 1),
        ("1\tMira\t_\tX\t_\t_\t_\t_\t_\t_\r\r1\tOslo\t_\tX\t_\t_\t_\t_\t_\t_\r", CONLLU, 2),
        ("(3 (2 It) (3 works))\r(1 No)\r", SST, 2),
        ("(3 (2 It) (3 works))\r(1 No)\n", SST, 2),  # two files that were joined
        ("Mira O\r\rsleeps O\n", NER, 2),
        ("text,label\rGood.,1\rBad.,0\r", TEXTS, 2),
        ('{"text": "Good.", "label": 1}\r{"text": "Bad.", "label": 0}\r', LINES, 2),
        ("gold_label\tsentence1\tsentence2\rneutral\tIt rains.\tRain.\r", SNLI, 1),
        ("Mira\tO\r\rOslo\tO\r", TABLE, 2),
    ],
)
def test_lines_that_end_in_cr(text: str, settings: Settings, count: int, tmp_path: Path) -> None:
    assert len(read_text(tmp_path, text, settings)) == count


def test_a_cr_in_a_table_that_is_not_in_quotes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.csv:2: not a row of a table .*; a CR ends no line next to LF; convert"):
        read_text(tmp_path, "text,label\nGood.,1\rBad.,0\n", TEXTS)
    (example,) = read_text(tmp_path, 'text,label\n"Good\r\rfilm",1\n', TEXTS)
    assert (example["tokens"], example["line"]) == (["Good", "film"], 2)


@pytest.mark.parametrize(
    ("text", "settings", "labels"),
    [
        ("Mira B-PER\u2003\nsleeps\tO\u00a0\u3000\n", NER, ["U-PER", "O"]),
        ("Mira\tB-PER\u00a0\tX\n", {**NER, "columns": [0, 1]}, ["U-PER"]),
        ("Mira\tB-PER\u00a0\nsleeps\tO\ufeff\n", TABLE, ["B-PER", "O"]),
        ("1\tMira\t_\tX\u00a0\t_\t_\t_\t_\t_\t_\n", CONLLU, ["X"]),
        ('text,label\nGood.,"1\u00a0"\n', TEXTS, "1"),
        ('{"text": "Good.", "label": "good\u2003\\ufeff"}\n', LINES, "good"),
        ('{"tokens": ["Mira"], "tags": ["X\u00a0"]}\n', {"type": "jsonl", "task": "tagging"}, ["X"]),
        ('{"gold_label": "neutral\u00a0", "sentence1": "A.", "sentence2": "B."}\n', SNLI, "neutral"),
        ("(3\u00a0 (2 It) (3\u00a0 works))\u00a0\n", SST, "positive"),
    ],
)
def test_white_space_after_a_label(text: str, settings: Settings, labels: object, tmp_path: Path) -> None:
    (example,) = read_text(tmp_path, text, settings)
    assert example.get("tags", example.get("label")) == labels


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("\ufeffMira\ufeff O\n", NER),
        ("\n\ufeffMira\tO\n", TABLE),
        ("1\tMi\ufeffra\t_\tX\t_\t_\t_\t_\t_\t_\n", CONLLU),
        (conll_2012("d/0/0/\ufeffMira/NN/*/-/-/-/-/*/-"), COREF),
        ("\n\ufeff(\ufeff3 Mira)\n", SST),
        ("text,label\n\ufeffMira,1\n", TEXTS),
        ('{"text": "\\ufeffMira", "label": 1}\n', LINES),
        ('\n\ufeff{"text": ["Mira\\ufeff"], "label": 1}\n', LINES),
        ('{"tokens": "\\ufeffMira", "tags": "X"}\n', {"type": "jsonl", "task": "tagging"}),
    ],
)
def test_byte_order_marks_are_not_part_of_tokens(text: str, settings: Settings, tmp_path: Path) -> None:
    examples = read_text(tmp_path, text, settings)
    assert tokens(examples) == [["Mira"]]


def test_a_column_for_the_sentence(tmp_path: Path) -> None:
    settings = {**WORDS, "columns": {**WORDS["columns"], "sentence": "Sentence #"}}
    examples = read(ODD_FILES / "gmb_like.csv", settings)
    assert [len(example["tokens"]) for example in examples] == [7, 6, 6]
    assert [(example["sentence"], example["line"]) for example in examples] == [(0, 2), (1, 9), (2, 15)]
    by_value = {**TABLE, "columns": {"tokens": 1, "tags": -1, "sentence": 0}}
    text = "7\tMira\tO\n7\tleft\tO\n8\tOslo\tO\n\n8\tslept\tO\n7\tHello\tO\n"
    assert tokens(read_text(tmp_path, text, by_value)) == [["Mira", "left"], ["Oslo"], ["slept"], ["Hello"]]


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("Sentence #,Word,Tag\nSentence: 1,a,O\n,b,O\nSentence: 2,c,O\n", True),
        ("sent_id,Word,Tag\n1,a,O\n1,b,O\n2,c,O\n", True),
        ("nr,Word,Tag\n1,a,O\n,b,O\n2,c,O\n,d,O\n", True),
        ("sent_id,Word,Tag\n1,a,O\n1,b,O\n\n2,c,O\n", False),
        ("sentiment,Word,Tag\n1,a,O\n1,b,O\n2,c,O\n", False),
        ("type,Word,Tag\nPER,a,O\n,b,O\nLOC,c,O\n\nPER,d,O\n", False),
        ("number,Word,Tag\n1,a,O\n2,b,O\n", False),
    ],
)
def test_a_table_that_becomes_one_sentence(
    text: str, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):  # also when it is read from the cache
        caplog.clear()
        read_text(tmp_path, text, WORDS)
        found = [message for message in caplog.messages if "rows are read as one sentence" in message]
        assert len(found) == warns
        assert all(message.startswith(f"{tmp_path / 'data.csv'}:2: ") for message in found)


@pytest.mark.parametrize(
    ("text", "settings", "line"),
    [
        ("a O\n\n" + "word O\n" * 1001, NER, 3),
        ("a\tO\n\n" + "word\tO\n" * 1001, TABLE, 3),
        ("text,label\nShort.,1\n" + "word " * 1001 + ",0\n", TEXTS, 3),
        ('{"text": "' + "word " * 1001 + '", "label": 1}\n', LINES, 1),
        ('{"gold_label": "neutral", "sentence1": "A.", "sentence2": "' + "b " * 1001 + '"}\n', SNLI, 1),
        (conll_2012(*(f"d/0/{number}/a/NN/*/-/-/-/-/*/-" for number in range(1001))), COREF, 2),
        (
            conll_2012(*["d/0/0/a/NN/*/go/01/-/-/*/(V*)/-"] + ["d/0/1/a/NN/*/-/-/-/-/*/*/-"] * 1000),
            ROLES,
            2,
        ),
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
    example = {"sentences": [["a"] * 1001], "clusters": []}
    build(COREF).read([example])
    assert "row 0: a sentence of 1,001 tokens" in caplog.text


def test_long_passages_are_no_sentences(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers = [{"text": "word", "answer_start": 0}]
    row = {"question": "What?", "passage": "word " * 3000, "answers": answers}
    read_text(tmp_path, json.dumps(row), {"type": "jsonl", "task": "reading"})
    assert caplog.messages == []


GERMEVAL = {**TABLE, "columns": {"tokens": 1, "tags": 2}}
COMMENTS = "# one\n#\ttwo\n1\tMira\tB-PER\n# three\n2\tleft\tO\n\n# four\n\n# five\n1\tOslo\tB-LOC\n"


@pytest.mark.parametrize("settings", [{**NER, "columns": [1, 2], "tag_scheme": "IOB2"}, GERMEVAL])
def test_comments(settings: Settings, tmp_path: Path) -> None:
    examples = read(ODD_FILES / "germeval_like.tsv", {**settings, "comment": "#"})
    assert [(len(example["tokens"]), example["line"]) for example in examples] == [(6, 2), (2, 10)]
    examples = read_text(tmp_path, COMMENTS, {**settings, "comment": "#"})
    assert [(example["tokens"], example["line"]) for example in examples] == [(["Mira", "left"], 3), (["Oslo"], 10)]
    with pytest.raises(DataError, match=r"data\.txt:3, token 1: 'LOC' is not a tag"):
        read_text(tmp_path, COMMENTS.replace("\tO\n", "\tLOC\n"), {**settings, "comment": "#", "tag_scheme": "IOB2"})
    # Without the option
    with pytest.raises(
        DataError, match=r"germeval_like\.tsv:1: 2 column\(s\), but 4 in the next line; if '#' begins a"
    ):
        read(ODD_FILES / "germeval_like.tsv", settings)
    examples = read(ODD_FILES / "germeval_like.tsv", {**settings, "on_error": "skip"})
    assert [(len(example["tokens"]), example["line"]) for example in examples] == [(6, 2), (2, 10)]


def test_a_comment_within_a_cell_in_quotes_is_text(tmp_path: Path) -> None:
    text = '# a comment\ntext,label\n"one\n# two",1\n#3,2\n'
    (example,) = read_text(tmp_path, text, {**TEXTS, "comment": "#"})
    assert example["tokens"] == ["one", "#", "two"]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("Mira\tO\n-DOCSTART-\t-X-\nOslo\tO\n\nleft\tO\n", TABLE),
        ("-DOCSTART-\n\nMira\tX\tO\n\n-DOCSTART-\t-X-\tO\nOslo\tX\tO\n\nleft\tX\tO\n", TABLE),
        ("1\tMira\tO\n\n2\t-DOCSTART-\tO\n\n3\tOslo\tO\n\n4\tleft\tO\n", {**NER, "columns": [1, 2]}),
        (
            "".join(
                json.dumps({"tokens": [token], "tags": ["O"]}) + "\n"
                for token in ("Mira", "-DOCSTART-", "Oslo", "left")
            ),
            {"type": "jsonl", "task": "tagging"},
        ),
    ],
)
def test_borders_of_documents(text: str, settings: Settings, tmp_path: Path) -> None:
    examples = read_text(tmp_path, text, settings)
    found = [(example["tokens"], example["document"], example["sentence"]) for example in examples]
    assert found == [(["Mira"], 0, 0), (["Oslo"], 1, 0), (["left"], 1, 1)]


@pytest.mark.parametrize(
    ("text", "settings", "warns"),
    [
        ("word tag\nMira NNP\n", {**NER, "tag_scheme": None}, True),
        ("Token\tPOS\n\nMira\tNNP\n", TABLE, True),
        ("text\tlabel\nGood.\t1\n", {**TEXTS, "header": False, "columns": {"text": 0, "label": 1}}, True),
        (
            "gold_label\tsentence1\tsentence2\nneutral\tA.\tB.\n",
            {
                "type": "delimited",
                "task": "text_pairs",
                "header": False,
                "columns": {"label": 0, "premise": 1, "hypothesis": 2},
            },
            True,
        ),
        ("Word NNP\nMira NNP\n", {**NER, "tag_scheme": None}, False),
        ("text\t1\nlabel\t2\n", {**TEXTS, "header": False, "columns": {"text": 0, "label": 1}}, False),
    ],
)
def test_a_header_row_that_is_read_as_data(
    text: str, settings: Settings, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_text(tmp_path, text, settings)
    expected = f"{tmp_path / 'data.txt'}:1: what looks like the names of columns is read as data"
    assert [message.startswith(expected) for message in caplog.messages] == [True] * warns


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (("0/go/01/(V*)", "1/-/-/*"), None),
        (("0/go/01/(V*", "1/-/-/*)"), None),
        (("0/go/01/*", "1/-/-/*"), None),  # no V at all
        (("0/-/-/(V*)", "1/go/01/(C-V*)"), None),
        (("0/go/01/*", "1/-/-/(V*)"), "2: the predicate 'w0' has a frameset, but column 1 of roles has V at 'w1'"),
        (("0/go/-/*", "1/-/-/(V*)"), "3: 'w1' has no frameset; it is a predicate as column 1 of roles has V there"),
    ],
)
@pytest.mark.parametrize("settings", [ROLES, PREDICATES])
def test_a_frameset_and_its_span_on_different_tokens(
    rows: tuple[str, ...], problem: str | None, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = []
    for row in rows:
        number, lemma, frameset, role = row.split("/")
        lines.append(f"d/0/{number}/w{number}/NN/*/{lemma}/{frameset}/-/-/*/{role}/-")
    read_text(tmp_path, conll_2012(*lines), settings)
    assert caplog.messages == ([f"{tmp_path / 'data.txt'}:{problem}"] if problem else [])


def test_a_missing_frameset_is_named(caplog: pytest.LogCaptureFixture) -> None:
    read(path := ODD_FILES / "srl_missing_frameset.conll", ROLES)
    expected = "'running' has no frameset; it is a predicate as column 2 of roles has V there"
    assert caplog.messages == [f"{path}:4: {expected}"]
