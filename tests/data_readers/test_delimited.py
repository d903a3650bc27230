"""Tables: names and numbers of columns, quotes, tokens on lines, every error with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config import describe, load_config, to_json
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ConfigError, DataError
from elmo_tasks.runs.train import ExperimentConfig
from elmo_tasks.tasks import Classification, Reading, Tagging, TextPairs

STARS = {"task": "classification", "columns": {"text": "review", "label": "stars"}}
TAGS = {"task": "tagging", "columns": {"tokens": 0, "tags": -1}, "header": False}


def config(**settings: Any) -> DatasetReaderConfig:
    return DatasetReaderConfig.model_validate_json(json.dumps({"type": "delimited", **settings}))


def read(folder: Path, text: str, name: str = "data.csv", **settings: Any) -> list[dict[str, Any]]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return config(**settings).build().read(path).to_list()


def test_a_table_with_a_header(tmp_path: Path) -> None:
    text = '\ufeffid,stars,review\r\n7,5,"A ""bright"" film,\r\nreally."\r\n\r\n8,bad,Not good.\r\n,,\r\n'
    one, other = read(tmp_path, text, **STARS)
    assert one["tokens"] == ["A", '"', "bright", '"', "film", ",", "really", "."]
    assert (one["label"], one["line"]) == ("5", 2)
    assert (other["tokens"], other["label"], other["line"]) == (["Not", "good", "."], "bad", 5)


def test_the_name_of_a_file_chooses_its_delimiter_each_time(tmp_path: Path) -> None:
    text, settings = "label\ttext, other\n1\ta, b\n", {"task": "classification", "columns": {"text": -1, "label": 0}}
    assert read(tmp_path, text, "data.csv", **settings)[0]["tokens"] == ["b"]
    assert read(tmp_path, text, "data.tsv", **settings)[0]["tokens"] == ["a", ",", "b"]


def test_cells_may_be_long(tmp_path: Path) -> None:
    (example,) = read(tmp_path, f"text,label\n{'word ' * 40_000},1\n", task="classification", tokenizer="whitespace")
    assert len(example["tokens"]) == 40_000


def test_columns_by_number(tmp_path: Path) -> None:
    settings = {"task": "text_pairs", "columns": {"premise": 1, "hypothesis": 2, "label": 0}, "header": False}
    (example,) = read(tmp_path, 'same\tIt is "on.\tIt works.\n', "data.tsv", **settings)
    assert example["premise"] == ["It", "is", '"', "on", "."]
    assert (example["hypothesis"], example["label"]) == (["It", "works", "."], "same")


def test_columns_of_the_usual_names_another_delimiter_and_tokenizer(tmp_path: Path) -> None:
    settings = {"task": "classification", "delimiter": ";", "tokenizer": "whitespace"}
    (example,) = read(tmp_path, 'label;text\nx;"Mira; sleeps."\n', **settings)
    assert (example["tokens"], example["label"]) == (["Mira;", "sleeps."], "x")


@pytest.mark.parametrize(("scheme", "tags"), [(None, ["S-PER", "O"]), ("BIOUL", ["U-PER", "O"])])
def test_a_token_on_each_line(tmp_path: Path, scheme: str | None, tags: list[str]) -> None:
    text = 'Mira\tNNP\tS-PER\n"\t``\tO\n\t\t\n\nNew\tNNP\tB-LOC\nOslo\tNNP\tE-LOC\n'
    first, second = read(tmp_path, text, "data.tsv", **TAGS, tag_scheme=scheme)
    assert (first["tokens"], first["tags"], first["line"]) == (["Mira", '"'], tags, 1)
    assert (second["tokens"], second["sentence"], second["line"]) == (["New", "Oslo"], 1, 5)
    assert config(**TAGS, tag_scheme=scheme).task == Tagging(scheme)


def test_a_sentence_on_each_line(tmp_path: Path) -> None:
    settings = {"task": "tagging", "token_per_line": False}
    one, other = read(tmp_path, 'tags,tokens\nNNP VBZ,Mira sleeps\n"NNP ,","Mira ,"\n', **settings)
    assert (one["tokens"], one["tags"]) == (["Mira", "sleeps"], ["NNP", "VBZ"])
    assert (other["tokens"], other["tags"]) == (["Mira", ","], ["NNP", ","])


def test_quotes_can_be_text(tmp_path: Path) -> None:
    text = 'label,text\nx,"Mira" sleeps\n'
    with pytest.raises(DataError, match=r"data.csv:2: not a row of a table .*; with quotes: false, quotes are text"):
        read(tmp_path, text, task="classification")
    (example,) = read(tmp_path, text, task="classification", quotes=False)
    assert example["tokens"] == ['"', "Mira", '"', "sleeps"]
    first, second = read(tmp_path, '" PUNCT\nMira PROPN\n\n" PUNCT\n', **TAGS, delimiter=" ")
    assert (first["tokens"], second["tokens"]) == (['"', "Mira"], ['"'])


@pytest.mark.parametrize(
    ("text", "settings", "place", "problem"),
    [
        ("review,stars\nGood,5\nBad\n", STARS, ":3", "1 column(s); wanted 2 as in line 1: 'Bad'"),
        ("stars,reviews\n", STARS, "", "has no example"),
        ("stars,reviews\n5,Good\n", STARS, ":1", "no column 'review' among stars, reviews; name the columns in"),
        ("review,review\n", STARS, ":1", "columns that the header row has twice: 'review'"),
        ("review,stars\nGood,\n", STARS, ":2", "the label is ''; wanted a string that is not blank"),
        ("review,stars\n ,5\n", STARS, ":2", "'review' is ' '; wanted a text with at least one token"),
        ('review,stars\n"Good,5\n', STARS, ":2", "not a row of a table (unexpected end of data)"),
        ("a\tO\n\nb\tO\nc\n", TAGS | {"delimiter": "\t"}, ":4", "1 column(s); wanted 2 as in line 1"),
        ("a,O\n,O\n", TAGS, ":2", "the token is ''; wanted a string that is not empty"),
        ("a,O\nb,LOC\n", TAGS | {"tag_scheme": "IOB2"}, ":2", "'LOC' is not a tag"),
        ("a,O\n", TAGS | {"columns": {"tokens": 0, "tags": 2}}, ":1", "2 column(s); wanted at least 3: 'a,O'"),
    ],
)
def test_errors_name_file_and_line(
    tmp_path: Path, text: str, settings: dict[str, Any], place: str, problem: str
) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, text, **settings)
    assert str(caught.value).startswith(f"{tmp_path / 'data.csv'}{place}: {problem}")


def test_a_bad_row_or_sentence_can_be_skipped(tmp_path: Path) -> None:
    assert len(read(tmp_path, "review,stars\nGood,5\nBad\nFine,4\n", **STARS, on_error="skip")) == 2
    examples = read(tmp_path, "a,O\nb\n\nc,O\n", **TAGS, on_error="skip")
    assert [example["tokens"] for example in examples] == [["c"]]


@pytest.mark.parametrize("rest", ["", 'Odd,"2\n'])  # the open quote reaches to the end of the file, or to the next one
def test_an_open_quote_costs_its_own_row_only(tmp_path: Path, rest: str) -> None:
    rows = "".join(f"Good {number},5\n" for number in range(9))
    text = f'review,stars\n{rows}"Bad,1\n{rows}{rest}{rows}"Two\nlines",3\n'
    with pytest.raises(DataError, match=r"data.csv:11: not a row .*, in a cell in quotes that goes on to line \d\d"):
        read(tmp_path, text, **STARS)
    examples = read(tmp_path, text, **STARS, on_error="skip")
    wanted = [*(["Good", str(number)] for _ in range(3) for number in range(9)), ["Two", "lines"]]
    assert [example["tokens"] for example in examples] == wanted


def test_white_space_around_labels_means_nothing(tmp_path: Path) -> None:
    examples = read(tmp_path, "review,stars\nGood, x\nFine,x \nWell,x\n", **STARS)
    assert [example["label"] for example in examples] == ["x", "x", "x"]


def test_config(tmp_path: Path) -> None:
    assert config(task="classification").task == Classification()
    assert config(task="text_pairs").task == TextPairs()
    resolved = to_json(config(**STARS))
    assert resolved["task"] == "classification"
    assert DatasetReaderConfig.model_validate_json(json.dumps(resolved)) == config(**STARS)
    assert 'task: "classification"' in describe(config(**STARS))


def test_they_are_named_where_another_reader_does_not_fit() -> None:
    assert config(task="tagging").can_read(Classification())
    assert not config(task="tagging").can_read(Reading())  # only with JSON or the hub


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"task": "taging"}, "dataset_reader.task: wanted one of .*, got \"taging\". Did you mean 'tagging'?"),
        ({"task": "tagging", "header": False}, "without a header row they have numbers; wanted those of tokens, tags"),
        ({"task": "tagging", "columns": {"text": 0}}, "'text' is not in a row of this task; wanted: tokens, tags"),
        ({"task": "classification", "tag_scheme": "IOB2"}, "tag_scheme is for the task 'tagging'"),
        ({"task": "classification", "tokenizer": "unicod"}, "tokenizer: wanted one of .* Did you mean 'unicode'?"),
    ],
)
def test_wrong_configs_are_explained(tmp_path: Path, settings: dict[str, Any], problem: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"dataset_reader": {"type": "delimited", **settings}}))
    with pytest.raises(ConfigError, match=problem):
        load_config(path, ExperimentConfig)


def test_several_columns_may_have_no_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text("text\tlabel\t\t\nA day\tgood\t1\t2\n")
    reader = DatasetReaderConfig.model_validate({"type": "delimited", "task": "classification"}).build()
    assert [each["label"] for each in reader.examples(path)] == ["good"]
