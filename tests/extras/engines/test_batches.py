"""`Embed` and `Predict`: the results of the plain functions, as tables; errors, pickles, types."""

import dataclasses
import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elmo_tasks
from elmo_tasks.batches import Embed, Predict
from elmo_tasks.errors import ArgumentError, DataError
from elmo_tasks.extras.engines.table_functions import RESULT_TYPES
from elmo_tasks.predictors import Predictor
from tests.predictors.stub_models import MAKERS

MODELS = Path(elmo_tasks.__file__).parents[1] / "trained_models" / "elmo_tasks_models"
ROWS: list[dict[str, Any]] = [
    {"source": "a.txt", "line": 1, "text": "The mill burnt down. Nobody was hurt."},
    {"source": "a.txt", "line": 3, "text": " "},
    {"source": "a.txt", "line": 4, "text": "Orla sold it."},
]


def test_texts_are_split_as_it_is_said(sample_folder: Path) -> None:
    for tokenizer, tokens in ((None, ["Orla", "'s", "mill", "."]), ("whitespace", ["Orla's", "mill."])):
        embed = Embed(bilm=sample_folder / "bilm", tokenizer=tokenizer, pool="mean")
        result = embed(pa.table({"text": ["Orla's mill."], "id": [3]}))
        assert result["tokens"].to_pylist() == [tokens]
        assert (result["id"].to_pylist(), result["sentence"].to_pylist()) == (["3"], [0])


@pytest.mark.parametrize("pool", ["none", "mean"])
def test_all_layers_are_those_that_can_be_chosen(pool: Any, sample_folder: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    every = Embed(bilm=sample_folder / "bilm", layers="all", pool=pool)(table)["vectors"].to_pylist()
    for layer in range(3):
        found = Embed(bilm=sample_folder / "bilm", layers=str(layer), pool=pool)(table)["vectors"].to_pylist()
        if pool == "mean":
            assert [each and each[layer] for each in every] == found
        else:
            assert [each and [token[layer] for token in each] for each in every] == found


def test_a_pickle_has_no_model(sample_folder: Path) -> None:
    embed = Embed(bilm=sample_folder / "bilm")
    table = pa.Table.from_pylist(ROWS)
    result = embed(table)
    content = pickle.dumps(embed)
    assert len(content) < 1_000
    assert pickle.loads(content)(table).equals(result)
    assert embed(table.slice(0, 0)).schema == result.schema


def test_rows_of_no_use(sample_folder: Path) -> None:
    rows = [
        {"json": '{"id": 7, "tokens": ["Orla", "left"]}', "error": None},
        {"json": '{"tokens": ["Orla", ""]}', "error": None},
        {"json": "[1]", "error": None},
        {"json": '{"text": 1e999}', "error": None},
        {"json": None, "error": "a.txt:5: byte 0xe4"},
        {"json": '{"id": null, "tokens": ["Tavo"]}', "error": None},
    ]
    table = pa.Table.from_pylist(rows)
    found = Embed(bilm=sample_folder / "bilm", on_error="record")(table).to_pylist()
    assert [row["id"] for row in found] == ["7", *(f"table:{line}" for line in range(2, 7))]
    assert [row["error"] and row["error"][:40] for row in found] == [
        None,
        "table:2: 'tokens' has '' at position 1; ",
        "table:3: a JSON list; expected a JSON ob",
        "table:4: 1e999 is not a finite number (n",
        "a.txt:5: byte 0xe4",
        None,
    ]
    later = Embed(bilm=sample_folder / "bilm", on_error="record")(table.slice(4)).to_pylist()
    assert [bool(row["vectors"]) for row in later] == [False, True]
    with pytest.raises(DataError, match="table:2: 'tokens' has ''"):
        Embed(bilm=sample_folder / "bilm")(table)
    wrong: Any = rows
    with pytest.raises(TypeError, match=r"^table is \[.*; expected a table of pyarrow"):
        Embed(bilm=sample_folder / "bilm")(wrong)


def test_a_missing_text_is_an_error_and_a_blank_one_is_not(sample_folder: Path) -> None:
    table, embed = pa.table({"id": list("abc"), "text": ["It rained.", " ", None]}), Embed(bilm=sample_folder / "bilm")
    with pytest.raises(DataError, match=r"table:3: the keys are \['id'\]; .*'tokens' among them; null: 'text'$"):
        embed(table)
    assert embed(table.slice(0, 2))["error"].to_pylist() == [None, "table:2: a blank text, which has no results"]


def test_wrong_settings_are_refused_before_the_model_is_loaded() -> None:
    for name in ("pool", "number_type", "precision", "on_error"):
        with pytest.raises(ArgumentError, match=f"^{name} is 'median'; expected "):
            Embed(**{name: "median"})  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """A value of a table as it was before: without what is missing, and with dicts for maps."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return [plain(each) for each in value] if isinstance(value, list) else value


INPUTS: dict[str, list[dict[str, Any]]] = {
    "text_pairs": [{"premise": "Orla left.", "hypothesis_tokens": ["She", "left"]}],
    "reading": [{"passage": "It was MAY. Orla left.", "question": "When was it?"}],
}


@pytest.mark.parametrize("task", MAKERS)
def test_tables_hold_all_of_the_results(task: str) -> None:
    predictor: Predictor = MAKERS[task]()
    results = predictor(INPUTS.get(task, [{"text": "Orla left. She sang."}, {"tokens": ["Ann", "left", "Ann"]}]))
    assert results
    types = RESULT_TYPES[type(predictor)]
    schema = pa.schema(list(types.items()))
    known = [{key: value for key, value in each.items() if key in types} for each in results]
    assert [plain(each) for each in pa.Table.from_pylist(known, schema).to_pylist()] == [plain(each) for each in known]
    carried = {"premise", "hypothesis"}  # raw texts of pairs
    assert {key for each in results for key in each} - set(types) <= carried


def test_rows_that_cannot_be_predicted_have_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predictor, "most_explained", 5 * 32)
    rows: list[dict[str, Any]] = [
        {"line": 7, "id": 3, "tokens": ["Mary", "sold", "it", "."], "price": 2},
        {"line": 8, "tokens": ["Orla", ""]},
        {"line": 9, "tokens": ["Mary", "sold", "it", "it", "it", "."]},  # too long to be explained
        {"line": 10, "price": 3},
        {"line": 11, "tokens": ["Mary", "sold", "it", "."]},
        {"line": 12, "error": "line 12: byte 0xe4"},
    ]
    table = pa.Table.from_pylist([{**dict.fromkeys(("id", "tokens", "price", "error")), **row} for row in rows])
    predict = Predict(run="ner", explain=True, on_error="record")
    result = predict(table)
    assert result.schema == predict.schema(table.schema)
    found = result.to_pylist()
    assert [(row["id"], row["line"]) for row in found] == [
        ("3", 7), ("table:8", 8), ("table:9", 9), ("table:10", 10), ("table:11", 11), ("table:12", 12),
    ]  # fmt: skip
    problems = [
        None,
        "table:8: 'tokens' has '' at position 1; ",
        "table:9: to explain 1 parts, the model r",
        "table:10: the keys are ['price']; expect",
        None,
        "line 12: byte 0xe4",
    ]
    assert [row["error"] and row["error"][:40] for row in found] == problems
    assert [row["other"] for row in found] == ['{"price": 2}', None, None, None, None, None]
    for row in (found[0], found[4]):
        assert row["tags"] == ["U-PER", "O", "O", "O"]
        ((item,), plain) = json.loads(row["saliency"]), rows[0]["tokens"]
        assert (item["of"], [token for token, _ in item["tokens"]]) == ("PER", plain)
    failing = dataclasses.replace(predict, on_error="fail")
    for first, problem in ((1, "table:8: "), (2, "table:9: "), (3, "table:10: ")):
        with pytest.raises(DataError, match=f"^{problem}"):
            failing(table.slice(first, 4))
    plain_result = Predict(run="ner")(table.slice(2, 1))
    assert (plain_result["tokens"].to_pylist(), "saliency" in plain_result.column_names) == ([rows[2]["tokens"]], False)


def test_a_run_with_elmo_and_one_without_are_an_ensemble() -> None:
    predict = Predict(run=["pos", "pos_without_elmo"])
    (row,) = predict(pa.Table.from_pylist(ROWS[2:])).to_pylist()
    assert row["tags"] == ["NNP", "VBD", "PRP", "."]


def test_a_tagger_finds_the_predicates() -> None:
    predict = Predict(run="roles", predicates="pos_without_elmo", overrides={"model.dropout": 0.5})
    (row,) = predict(pa.Table.from_pylist(ROWS[2:])).to_pylist()
    assert [frame["predicate_text"] for frame in row["frames"]] == ["sold"]


def test_vectors_are_computed_on_the_device(sample_folder: Path) -> None:
    with pytest.raises(RuntimeError, match="device string: nowhere"):
        Embed(bilm=sample_folder / "bilm", device="nowhere")(pa.table({"text": ["Orla left."]}))


def test_settings_are_what_decides_about_results(sample_folder: Path) -> None:
    """Models by the hashes of their files."""
    names = ("config.json", "vocabulary.json", "model.safetensors", "calibration.json")
    runs = [MODELS / name for name in ("pos", "pos_without_elmo")]
    files = [[run / name for name in names if (run / name).is_file()] for run in runs]
    one, two = ([hashlib.sha256(file.read_bytes()).hexdigest() for file in each] for each in files)
    assert (len(one), len(two)) == (4, 3)  # one is calibrated
    plain = {"run": one, "predicates": None, "explain": None, "overrides": [], "batch_tokens": 2048}
    assert Predict(run=runs[0]).settings() == plain
    predict = Predict(run=runs, predicates=runs[1], overrides={"model.dropout": 0.5}, explain=True, batch_tokens=7)
    assert predict.settings() == {
        "run": [*one, *two], "predicates": two[2], "overrides": ["model.dropout=0.5"], "explain": "integrated",
        "batch_tokens": 7,
    }  # fmt: skip
    settings: dict[str, Any] = {"layers": "top", "pool": "max", "number_type": "float32", "batch_tokens": 7}
    found = Embed(bilm=sample_folder / "bilm", precision="int8", tokenizer="unicode", **settings).settings()
    others = Embed().settings()
    assert found == {**settings, "precision": "int8", "bilm": found["bilm"], "tokenizer": found["tokenizer"]}
    assert found["bilm"] != others["bilm"]
    assert found["tokenizer"] != others["tokenizer"]
