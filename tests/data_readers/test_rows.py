"""Rows of all kinds: labels that mean none, speakers, optional columns, passages, and what is skipped."""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from elmo_tasks.data_readers import Parsing
from elmo_tasks.errors import DataError
from tests.data_readers.readers import (
    LINES,
    NER,
    ODD_FILES,
    SNLI,
    STARS,
    TEXTS,
    Settings,
    build,
    problem,
    read,
    read_rows,
    read_text,
    write,
    write_hub,
)

STRING = datasets.Value("string")


@pytest.mark.parametrize(
    ("settings", "label", "labels", "expected", "left_out"),
    [
        (LINES | {"type": "hub"}, ["bad", "good"], [1, -1, None], ["good"], "2 row(s)"),
        (LINES | {"type": "hub", "no_label": ["bad"]}, ["bad", "good"], [1, 0, -1], ["good"], "2 row(s)"),
        (SNLI, ["entailment", "neutral", "contradiction"], [1, -1, 0, None], ["neutral", "entailment"], "2 pair(s)"),
        (SNLI, None, ["neutral", "-", None], ["neutral"], "2 pair(s)"),
    ],
)
def test_class_ids_of_the_hub(
    settings: Settings,
    label: list[str] | None,
    labels: list[Any],
    expected: list[str],
    left_out: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    names = ("text",) if settings["type"] == "hub" else ("premise", "hypothesis")
    feature = datasets.ClassLabel(names=label) if label else STRING
    features = datasets.Features({**dict.fromkeys(names, STRING), "label": feature})
    columns = {**{name: ["It rained."] * len(labels) for name in names}, "label": labels}
    source = write_hub(tmp_path / "hub", datasets.Dataset.from_dict(columns, features))
    assert build(settings).read(source)["label"][:] == expected
    assert f"{source}: {left_out} without a gold label left out" in caplog.text


def test_class_ids_without_examples_or_with_unknown_names(tmp_path: Path) -> None:
    features = datasets.Features({"premise": STRING, "hypothesis": STRING, "label": datasets.ClassLabel(names=["no"])})
    rows = {"premise": ["It."], "hypothesis": ["It."], "label": [0]}
    source = write_hub(tmp_path / "hub", datasets.Dataset.from_dict(rows, features))
    assert problem(source, SNLI).startswith(": row 0: label 'no'; expected entailment, neutral")
    settings = {"type": "hub", "task": "text_pairs", "no_label": ["no"]}
    assert problem(source, settings) == ": has no example; 1 row(s) without a gold label left out"


def test_rows_without_any_gold_label(tmp_path: Path) -> None:
    path = write(tmp_path / "data.jsonl", '{"text": "a", "label": -1}\n')
    assert problem(path, LINES) == ": has no example; 1 row(s) without a gold label left out"
    (example,) = read_rows(tmp_path, [{"text": "a", "labels": [0, 1]}], task="multi_label")
    assert example["labels"] == ["0", "1"]  # names of labels, since none is there twice


def test_a_data_set_converted_from_the_hub(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    reader = build(LINES | {"task": "text_pairs"})
    assert reader.read(ODD_FILES / "hf_snli.jsonl")["label"][:] == ["0", "2"]
    assert "hf_snli.jsonl: 1 row(s) without a gold label left out" in caplog.text


@pytest.mark.parametrize(
    ("labels", "no_label", "read_as", "says"),
    [
        ([-1, 0, 2], None, ["0", "2"], "read as no gold label; with no_label: [], it is a label"),
        (["-1", "2", "-1", "0"], None, ["2", "0"], "read as no gold label"),
        ([-1, 0, 1], None, ["-1", "0", "1"], "-1 is read as a label; if it means no gold label, set no_label to"),
        ([1, -1], None, ["1", "-1"], "-1 is read as a label"),
        (["-1", "good"], None, ["-1", "good"], "-1 is read as a label"),
        ([-2, -1, 0, 1, 2], None, ["-2", "-1", "0", "1", "2"], ""),
        ([-1, 0, 2], [], ["-1", "0", "2"], ""),
        ([-1, 0, 1], ["-1"], ["0", "1"], "1 row(s) without a gold label left out"),
        (["-", "good", "?"], ["-", "?"], ["good"], "2 row(s) without a gold label left out"),
    ],
)
@pytest.mark.parametrize("kind", ["jsonl", "delimited", "hub"])
def test_labels_that_mean_no_label(
    kind: str,
    labels: list[Any],
    no_label: list[str] | None,
    read_as: list[str],
    says: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    rows = [{"text": "Yes.", "label": label} for label in labels]
    source: str | Path
    if kind == "hub":
        source = write_hub(tmp_path / "hub", datasets.Dataset.from_list(rows))
    elif kind == "delimited":
        source = write(tmp_path / "data.csv", "text,label\n" + "".join(f"Yes.,{label}\n" for label in labels))
    else:
        source = write(tmp_path / "data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data = build({"type": kind, "task": "classification", "no_label": no_label}).read(source)
    assert data["label"][:] == read_as
    assert says in caplog.text
    if not says:
        assert "is read as" not in caplog.text
        assert "gold" not in caplog.text


def test_a_later_error_is_found_once(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": -1}, {"text": "b", "label": 2}, {"text": "c", "label": None}, {"text": "d"}]
    with pytest.raises(DataError, match=r":5: 'label' is None; expected a label"):
        read_rows(tmp_path, rows)
    assert [each["label"] for each in read_rows(tmp_path, rows, on_error="skip")] == ["2"]


def test_bad_rows_can_be_skipped(tmp_path: Path) -> None:
    good = {"text": "x", "label": "y"}
    assert len(read_rows(tmp_path, [[], good, {"text": ""}, good], on_error="skip")) == 2
    rows = [good | {"score": score} for score in (0.5, float("inf"), 1e308)]
    assert len(read_rows(tmp_path, rows, on_error="skip")) == 2


def test_the_reader_of_the_hub_reads_no_files(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "x")
    assert problem(path, {"type": "hub", "task": "tagging"}).startswith(": the reader 'hub' reads hub:NAME")


def test_sentences_without_tokens_are_left_out(tmp_path: Path) -> None:
    row = {"sentences": [[], ["Mary", "left"], [], ["She"]], "clusters": [[[0, 0], [2, 2]]]}
    for given, speakers in ((row, [["-", "-"], ["-"]]), (row | {"speakers": [[], ["a", "b"], [], ["-"]]}, None)):
        (example,) = read_rows(tmp_path, [given], task="coreference")
        assert example["sentences"] == [["Mary", "left"], ["She"]]
        assert example["speakers"] == (speakers or [["a", "b"], ["-"]])


def test_files_of_end_to_end_coreference() -> None:
    settings = LINES | {"task": "coreference", "columns": {"document": "doc_key"}}
    examples = [row for name in ("e2e", "e2e_nospeak") for row in read(ODD_FILES / f"{name}.jsonlines", settings)]
    assert [example["document"] for example in examples] == ["nw_0", "nw_1", "nw_0"]
    assert {name for example in examples for sentence in example["speakers"] for name in sentence} == {"-"}
    assert examples[0]["clusters"] == examples[2]["clusters"] == [[[0, 0], [3, 3]]]


def test_questions_about_several_passages(tmp_path: Path) -> None:
    texts = ["Mary sleeps.", "Mary sleeps.", "It was Orla."]
    answers = [[{"text": "Mary", "answer_start": 0}]] * 2 + [[{"text": "Orla", "answer_start": 7}]]
    rows = [
        {"question": "Who?", "passage": text, "answers": each, "key": f"q{number}"}
        for number, (text, each) in enumerate(zip(texts, answers, strict=True))
    ]
    examples = read_rows(tmp_path, rows, task="reading", columns={"id": "key"})
    assert [each["passage"] for each in examples] == texts
    assert [each["answer_spans"] for each in examples] == [[[0, 0]], [[0, 0]], [[2, 2]]]
    assert [each["id"] for each in examples] == ["q0", "q1", "q2"]


@pytest.mark.parametrize("tag", [-1, -100, 3, None])
def test_a_class_id_out_of_range(tag: int | None) -> None:
    labels = datasets.ClassLabel(names=["O", "B-LOC", "I-LOC"])
    features = {"tokens": datasets.Sequence(STRING), "ner_tags": datasets.Sequence(labels)}
    data = {"tokens": [["Oslo"], ["Oslo", "sleeps"]], "ner_tags": [[1], [1, tag]]}
    info = datasets.DatasetInfo(features=datasets.Features(features))
    rows = datasets.Dataset(datasets.Dataset.from_dict(data).data, info=info)
    message = f"hub:some: row 1, token 1: the tag is {tag}(; expected a class id from 0 to 2|, the mark of)"
    with pytest.raises(DataError, match=message):
        list(build(NER).hub_examples(rows, "hub:some", Parsing()))


@pytest.mark.parametrize("rest", ["", 'Odd,"2\n'])  # the open quote reaches to the end of the file, or to the next one
def test_an_open_quote_costs_its_own_row_only(tmp_path: Path, rest: str) -> None:
    rows = "".join(f"Good {number},5\n" for number in range(9))
    text = f'review,stars\n{rows}"Bad,1\n{rows}{rest}{rows}"Two\nlines",3\n'
    with pytest.raises(DataError, match=r"data.csv:11: not a row .*, in a cell in quotes that goes on to line \d\d"):
        read_text(tmp_path, text, STARS)
    examples = read_text(tmp_path, text, STARS | {"on_error": "skip"})
    expected = [*(["Good", str(number)] for _ in range(3) for number in range(9)), ["Two", "lines"]]
    assert [example["tokens"] for example in examples] == expected


def test_a_first_line_that_is_wrong_does_not_set_the_number_of_columns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {**TEXTS, "header": False, "columns": {"text": 0, "label": 1}, "on_error": "skip"}
    assert len(read_text(tmp_path, "My reviews\nGood.,1\nBad.,0\n", settings)) == 2
    assert "data.csv:1: 1 column(s); expected at least 2: 'My reviews'" in caplog.text
