"""JSON lines and hub data sets: the examples of every task, every error with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.data_readers.reader import PLACE_FEATURES
from elmo_tasks.data_readers.row_examples import ROW_TASKS
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.tasks import Coreference, Reading, SemanticRoles, Tagging

ODD_FILES = Path(__file__).parents[1] / "odd_files"

# task -> columns that have other names, a row of the source, and what the example has
ROWS: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, Any]]] = {
    "classification": (
        {"text": "review", "label": "stars"},
        {"review": "Not bad.", "stars": 4},
        {"tokens": ["Not", "bad", "."], "label": "4"},
    ),
    "text_pairs": (
        {},
        {"premise": ["It", "is."], "hypothesis": "It is.", "label": True},
        {"premise": ["It", "is."], "hypothesis": ["It", "is", "."], "label": "true"},
    ),
    "tagging": (
        {"tags": "pos"},
        {"tokens": ["Mira", "New York"], "pos": ["NNP", "NNP"]},
        {"tokens": ["Mira", "New York"], "tags": ["NNP", "NNP"], "document": 0, "sentence": 0},
    ),
    "semantic_roles": (
        {"predicate": "verb"},
        {"tokens": "Mira sleeps .", "verb": 1, "tags": "B-ARG0 B-V O"},
        {"tokens": ["Mira", "sleeps", "."], "predicate": 1, "lemma": "-", "tags": ["B-ARG0", "B-V", "O"]},
    ),
    "reading": (
        {"passage": "context"},
        {"question": "Who?", "context": "Mira sleeps.", "answers": {"text": ["Mira"], "answer_start": [0]}},
        {"question_tokens": ["Who", "?"], "answers": ["Mira"], "answer_spans": [[0, 0]], "token_ends": [4, 11, 12]},
    ),
    "coreference": (
        {"genre": "kind"},
        {"sentences": [["Mira", "left"], ["She", "ran"]], "clusters": [[[0, 0], [2, 2]]], "kind": "tale"},
        {"clusters": [[[0, 0], [2, 2]]], "genre": "tale", "speakers": [["-", "-"], ["-", "-"]]},
    ),
}


def config(kind: str, **settings: Any) -> DatasetReaderConfig:
    return DatasetReaderConfig.model_validate_json(json.dumps({"type": kind, **settings}))


def read(folder: Path, rows: list[Any], **settings: Any) -> list[dict[str, Any]]:
    path = folder / "data.jsonl"
    path.write_text("\n\n".join(json.dumps(row) for row in rows))
    return config("jsonl", **settings).build().read(path).to_list()


def test_every_task_has_rows() -> None:
    assert ROWS.keys() == ROW_TASKS.keys()


@pytest.mark.parametrize("task", ROWS)
@pytest.mark.parametrize("is_hub", [False, True], ids=["jsonl", "hub"])
def test_examples(tmp_path: Path, task: str, is_hub: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub_cache")
    columns, row, wanted = ROWS[task]
    if is_hub:
        row = {name: value for name, value in row.items() if not isinstance(value, bool)} | (
            {"label": "true"} if task == "text_pairs" else {}
        )
        (tmp_path / "hub").mkdir()
        datasets.Dataset.from_list([row]).to_parquet(tmp_path / "hub" / "train.parquet")
        reader = config("hub", task=task, columns=columns).build()
        data = reader.read(f"hub:{tmp_path / 'hub'}:train")
        assert data.features == {**reader.task.features, **PLACE_FEATURES}
        (example,) = data.to_list()
    else:
        (example,) = read(tmp_path, [row], task=task, columns=columns)
    assert {name: example[name] for name in wanted} == wanted
    assert example["line"] == (0 if is_hub else 1)


def test_tasks() -> None:
    assert config("jsonl", task="tagging", tag_scheme="BMES").task == Tagging("BMES")
    assert config("hub", task="reading").task == Reading()
    assert config("hub", task="semantic_roles").task == SemanticRoles()
    assert config("hub", task="coreference").task == Coreference()


def test_columns_that_a_task_does_not_have_are_refused() -> None:
    for task, columns in (
        ("coreference", "sentences, clusters; possible: speakers, genre, document"),
        ("tagging", "tokens, tags"),
    ):
        with pytest.raises(ValueError, match=rf"'text' is not in a row of this task; wanted: {columns}($| )"):
            config("jsonl", task=task, columns={"text": "a"})


def test_tag_schemes(tmp_path: Path) -> None:
    rows = [{"tokens": "小 明", "tags": "B-PER E-PER"}, {"tokens": "大 北 京", "tags": "B-LOC M-LOC E-LOC"}]
    examples = read(tmp_path, rows, task="tagging", tag_scheme="IOB2")
    assert [example["tags"] for example in examples] == [["B-PER", "I-PER"], ["B-LOC", "I-LOC", "I-LOC"]]


def test_class_ids_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub_cache")
    features = {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    (tmp_path / "hub").mkdir()
    values = {"text": ["Yes", "No", "So"], "label": [1, -1, None]}
    datasets.Dataset.from_dict(values, datasets.Features(features)).to_parquet(tmp_path / "hub" / "train.parquet")
    source = f"hub:{tmp_path / 'hub'}:train"
    caplog.set_level("INFO", "elmo_tasks")
    (example,) = config("hub", task="classification").build().read(source).to_list()
    assert (example["tokens"], example["label"]) == (["Yes"], "good")
    assert f"{source}: 2 row(s) without a gold label left out" in caplog.text
    with pytest.raises(DataError, match=r"has no example; 3 row\(s\) without a gold label left out"):
        config("hub", task="classification", no_label=["good"]).build().read(source)
    with pytest.raises(DataError, match=r"no column 'review' among text, label; name them in 'columns'"):
        config("hub", task="classification", columns={"text": "review"}).build().read(source)


def test_a_data_set_converted_from_the_hub(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    reader = config("jsonl", task="text_pairs").build()
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
    tmp_path: Path,
    kind: str,
    labels: list[Any],
    no_label: list[str] | None,
    read_as: list[str],
    says: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub_cache")
    caplog.set_level("INFO", "elmo_tasks")
    rows = [{"text": "Yes.", "label": label} for label in labels]
    source: str | Path = tmp_path / "data.jsonl"
    if kind == "hub":
        (tmp_path / "hub").mkdir()
        datasets.Dataset.from_list(rows).to_parquet(tmp_path / "hub" / "train.parquet")
        source = f"hub:{tmp_path / 'hub'}:train"
    elif kind == "delimited":
        source = tmp_path / "data.csv"
        source.write_text("text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in rows))
    else:
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = config(kind, task="classification", no_label=no_label).build().read(source)
    assert data["label"][:] == read_as
    assert says in caplog.text
    if not says:
        assert "is read as" not in caplog.text
        assert "gold" not in caplog.text


def test_a_later_error_is_found_once(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": -1}, {"text": "b", "label": 2}, {"text": "c", "label": None}, {"text": "d"}]
    with pytest.raises(DataError, match=r"jsonl:5: the label is None"):
        read(tmp_path, rows, task="classification")
    assert [each["label"] for each in read(tmp_path, rows, task="classification", on_error="skip")] == ["2"]


@pytest.mark.parametrize(("task", "row"), [("tagging", {}), ("semantic_roles", {"predicate": 0})])
def test_tags_that_do_not_count_are_refused(tmp_path: Path, task: str, row: dict[str, Any]) -> None:
    for tags in ([-100, 1], "-100 1"):
        with pytest.raises(DataError, match=r"jsonl:1, token 0: the tag is -100, the mark of .* pieces of words"):
            read(tmp_path, [{"tokens": "a b", "tags": tags, **row}], task=task)


def test_the_reader_of_the_hub_reads_no_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ElmoTasksError, match=r"a.txt: the reader 'hub' reads hub:NAME"):
        config("hub", task="tagging").build().read(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("task", "change", "problem"),
    [
        ("classification", {"stars": None}, "the label is None; wanted a string that is not blank, a whole number"),
        ("classification", {"stars": 4.0}, "the label is 4.0; wanted a string"),
        ("classification", {"review": ["a", 3]}, "the token is 3; wanted a string that is not empty"),
        ("classification", {"review": []}, "'review' is []; wanted a text with at least one token"),
        ("classification", {"review": ["a", ""]}, "the token is ''; wanted a string that is not empty"),
        ("classification", {"stars": " "}, "the label is ' '; wanted a string that is not blank"),
        ("text_pairs", {"premise": 3}, "'premise' is 3; wanted a list of strings, or a string"),
        ("tagging", {"pos": ["NNP"]}, "1 tags for 2 tokens"),
        (
            "tagging",
            {"tokens": "['Mira', 'left']"},
            "'tokens' is a list that was printed as text: \"['Mira', 'left']\"; ",
        ),
        ("tagging", {"tokens": "['Mira'\n 'left']"}, "'tokens' is a list that was printed as text: "),  # numpy's
        ("tagging", {"pos": '["NNP", "VBD"]'}, "'pos' is a list that was printed as text: "),
        (
            "tagging",
            {"pos": "[3 0]"},
            "'pos' is a list that was printed as text: '[3 0]'; expected its items with spaces",
        ),
        ("tagging", {"tokens": [], "pos": []}, "'tokens' has no token; wanted at least one"),
        ("semantic_roles", {"verb": 3}, "'verb' is 3; wanted the place of one of the 3 tokens, from 0"),
        ("semantic_roles", {"verb": -1}, "'verb' is -1; wanted the place of one of the 3 tokens, from 0"),
        ("semantic_roles", {"verb": True}, "'verb' is True; wanted the place"),
        ("semantic_roles", {"verb": "1"}, "'verb' is '1'; wanted the place"),
        ("semantic_roles", {"tags": "B-ARG0 V O"}, "'V' is not a tag"),
        ("reading", {"answers": {"text": ["Mira"], "answer_start": [3]}}, "the answer 'Mira' is not at 3"),
        ("reading", {"answers": "Mira"}, "a string; wanted an array"),
        ("coreference", {"clusters": [[[0, 4]]]}, "'clusters' has the mention [0, 4]; wanted [first, last token]"),
        ("coreference", {"clusters": [3]}, "'clusters' has the mention 3; wanted [first, last token]"),
        ("coreference", {"clusters": [[[0, 1], [2, 1]]]}, "'clusters' has the mention [2, 1]; wanted"),
        ("coreference", {"clusters": [[[-1, 0]]]}, "'clusters' has the mention [-1, 0]; wanted"),
        ("coreference", {"clusters": [[[0, 1, 2]]]}, "'clusters' has the mention [0, 1, 2]; wanted"),
        ("coreference", {"clusters": [[[0, True]]]}, "'clusters' has the mention [0, True]; wanted"),
        ("coreference", {"clusters": 3}, "'clusters' is 3; wanted a list"),
        ("coreference", {"sentences": [], "clusters": []}, "'sentences' has no token; wanted at least one"),
        ("coreference", {"sentences": [[], []], "clusters": []}, "'sentences' has no token; wanted at least one"),
        ("coreference", {"sentences": [["a", 3]]}, "the token is 3; wanted a string that is not empty"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, task: str, change: dict[str, Any], problem: str) -> None:
    columns, row, _ = ROWS[task]
    with pytest.raises(DataError) as caught:
        read(tmp_path, [row, row | change], task=task, columns=columns)
    assert str(caught.value).startswith(f"{tmp_path / 'data.jsonl'}:3")
    assert problem in str(caught.value)


def test_sentences_without_tokens_are_left_out(tmp_path: Path) -> None:
    row = {"sentences": [[], ["Mira", "left"], [], ["She"]], "clusters": [[[0, 0], [2, 2]]]}
    names = {"speakers": [[], ["a", "b"], [], ["-"]]}
    for given, columns, speakers in (
        (row, {}, [["-", "-"], ["-"]]),
        (row | names, {"speakers": "speakers"}, [["a", "b"], ["-"]]),
    ):
        (example,) = read(tmp_path, [given], task="coreference", columns=columns)
        assert example["sentences"] == [["Mira", "left"], ["She"]]
        assert example["speakers"] == speakers


@pytest.mark.parametrize(
    ("given", "speakers"),
    [
        ([["", ""], [""]], [["-", "-"], ["-"]]),
        ([], [["-", "-"], ["-"]]),
        (None, [["-", "-"], ["-"]]),
        ([[], None], [["-", "-"], ["-"]]),
        ([["a", None], [" "]], [["a", "-"], ["-"]]),
        (["a", ""], [["a", "a"], ["-"]]),
    ],
    ids=repr,
)
def test_speakers_that_are_not_known(tmp_path: Path, given: Any, speakers: list[list[str]]) -> None:
    row = {"sentences": [["Mira", "left"], ["She"]], "clusters": [], "who": given}
    (example,) = read(tmp_path, [row], task="coreference", columns={"speakers": "who"})
    assert example["speakers"] == speakers


def test_files_of_end_to_end_coreference() -> None:
    reader = config("jsonl", task="coreference", columns={"document": "doc_key"}).build()
    examples = [
        row for name in ("e2e", "e2e_nospeak") for row in reader.read(ODD_FILES / f"{name}.jsonlines").to_list()
    ]
    assert [example["document"] for example in examples] == ["nw_0", "nw_1", "nw_0"]
    assert {name for example in examples for sentence in example["speakers"] for name in sentence} == {"-"}
    assert examples[0]["clusters"] == examples[2]["clusters"] == [[[0, 0], [3, 3]]]


def test_numbers_that_json_does_not_have_are_refused(tmp_path: Path) -> None:
    reader = config("jsonl", task="classification", columns={"label": "n"}).build()
    with pytest.raises(DataError, match=r"nan\.jsonl:1: NaN at column 33; expected a finite number, or null"):
        reader.read(ODD_FILES / "nan.jsonl")
    rows = [{"text": "Yes", "label": 1, "score": score} for score in (0.5, float("inf"), 1e308)]
    assert len(read(tmp_path, rows, task="classification", on_error="skip")) == 2


def test_an_answer_that_no_token_covers(tmp_path: Path) -> None:
    row = {"question": "When?", "passage": "It opened in 1912.", "answers": [{"text": "1912", "answer_start": 13}]}
    with pytest.raises(DataError, match=r"answers\[0\]: the answer '1912' has no token; wanted a tokenizer that keeps"):
        read(tmp_path, [row], task="reading", tokenizer={"type": "regex", "pattern": r"\p{L}+|\p{P}"})


def test_what_a_row_may_have_in_addition(tmp_path: Path) -> None:
    row = {
        "sentences": [["Mira", "left"], ["She"]],
        "clusters": [[[0, 0], [2, 2]]],
        "who": [["a", "b"], ["-"]],
        "name": "x",
    }
    columns = {"speakers": "who", "document": "name"}
    (example,) = read(tmp_path, [row], task="coreference", columns=columns)
    assert (example["speakers"], example["document"], example["genre"]) == ([["a", "b"], ["-"]], "x", None)
    for wrong, problem in (
        ([["a", "b"]], r"'who' is .*; expected a list with as many items as there are sentences, 2"),
        ([["a"], ["b"]], r"'who\[0\]' is \['a'\]; expected a speaker, or one for each of 2 tokens"),
        ([["a", "b"], ["c", "d"]], r"'who\[1\]' is .*; expected a speaker, or one for each of 1 tokens"),
        ([["a", 7], ["c"]], r"'who\[0\]' is .*; expected a speaker"),
    ):
        with pytest.raises(DataError, match=f"data.jsonl:1: {problem}"):
            read(tmp_path, [row | {"who": wrong}], task="coreference", columns=columns)
    assert [each["document"] for each in read(tmp_path, [row, row], task="coreference")] == ["1", "3"]  # the lines
    row = {"tokens": ["Go", "on"], "predicate": 0, "tags": ["B-V", "O"], "lemma": "go"}
    for columns in ({"lemma": "lemma"}, {}):
        examples = read(tmp_path, [row, row], task="semantic_roles", columns=columns)
        assert [(each["predicate"], each["lemma"]) for each in examples] == [(0, "go"), (0, "go")]
        assert [each["sentence"] for each in examples] == [0, 1]


def test_what_is_optional_is_read_from_columns_of_its_name(tmp_path: Path) -> None:
    row = {"sentences": [["Mira", "left"]], "clusters": [], "document": "nw/1", "genre": "nw", "speakers": [["A", "A"]]}
    named, empty = read(tmp_path, [row, row | {"document": None, "genre": None}], task="coreference")
    assert (named["document"], named["genre"], named["speakers"]) == ("nw/1", "nw", [["A", "A"]])
    assert (empty["document"], empty["genre"]) == ("3", None)
    question = {"question": "Who?", "passage": "Mira.", "answers": [{"text": "Mira", "answer_start": 0}]}
    given = [question, question | {"id": None}, question | {"id": "q"}, question | {"id": 7}]
    assert [each["id"] for each in read(tmp_path, given, task="reading")] == ["1", "3", "q", "7"]
    with pytest.raises(DataError, match=r":1: 'id' is 0.5; wanted a string or a whole number"):
        read(tmp_path, [question | {"id": 0.5}], task="reading")


def test_questions_about_several_passages(tmp_path: Path) -> None:
    texts = ["Mira sleeps.", "Mira sleeps.", "It was Orla."]
    answers = [[{"text": "Mira", "answer_start": 0}]] * 2 + [[{"text": "Orla", "answer_start": 7}]]
    rows = [
        {"question": "Who?", "passage": text, "answers": each, "key": f"q{number}"}
        for number, (text, each) in enumerate(zip(texts, answers, strict=True))
    ]
    examples = read(tmp_path, rows, task="reading", columns={"id": "key"})
    assert [each["passage"] for each in examples] == texts
    assert [each["answer_spans"] for each in examples] == [[[0, 0]], [[0, 0]], [[2, 2]]]
    assert [each["id"] for each in examples] == ["q0", "q1", "q2"]
    assert [each["id"] for each in read(tmp_path, rows, task="reading")] == ["1", "3", "5"]


def test_answers_that_tokens_do_not_fit_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(
        tmp_path,
        [{"question": "Who?", "passage": "Mira", "answers": [{"text": "Mi", "answer_start": 0}]}],
        task="reading",
    )
    assert "1 of 1 answers do not begin and end where tokens do" in caplog.text


def test_a_missing_key_and_bad_lines(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data.jsonl:1: no 'text' among review"):
        read(tmp_path, [{"review": "x"}], task="classification")
    with pytest.raises(DataError, match=r"data.jsonl:1: a JSON list; wanted an object"):
        read(tmp_path, [[]], task="classification")
    good = {"text": "x", "label": "y"}
    assert len(read(tmp_path, [[], good, {"text": ""}, good], task="classification", on_error="skip")) == 2
