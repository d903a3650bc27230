"""What holds for everything that takes a user's list, file or table and gives one back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from elmo_tasks.data_readers import DatasetReaderConfig
from tests import edges
from tests.edges import ANNOTATED, COLUMNS, EDGES, Edge, World, is_cell, letters, plain

PIECES = ["Orla", "Tavo Lund", "met", "it.", "He left. She Sang!", "Über", "e\u0301", "😀", "👩\u200d👧", "<b>&", "{"]
PIECES += [" ", "  ", "\u00a0", "\n", "\r\n", "\t", "\u200b", "\x07", "\x7f", "\x85", "\u2028", "\ufeff", "\uffff"]
PIECES += ['"', "''", "'x", "„so“", ",", ";", "|", "\\n", "=1", "#N/A", "_x000D_", "-DOCSTART-", "null"]
PIECES += ["TRUE", "0.10", "007", "1582218195625938945", " It rained. So Orla left! ", "Oh. No. Yes. ", "He is. I am. "]
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)
TEXT = st.lists(st.sampled_from(PIECES) | st.sampled_from(PIECES) | ANY, max_size=9).map("".join)
ONE_LINE = TEXT.map(lambda text: re.sub("[\r\n\ufeff]", " ", text))
NUMBERS = st.integers() | st.sampled_from([1582218195625938945, 2**70, -0.5, 0.1, 1e-7, 12345678901234.5])
IDS = NUMBERS | TEXT | st.none()
VALUES = IDS | st.booleans() | st.lists(NUMBERS | TEXT, max_size=2) | st.dictionaries(TEXT, NUMBERS, max_size=2)
UNUSABLE: list[Any] = [None, 3, True, "Orla", ["Orla"], {}, {"id": 7}, {"text": None, "id": "a"}, {"text": 3}]
UNUSABLE += [{"tokens": []}, {"tokens": ["Orla", ""]}, {"text": "a", "tokens": ["a"]}]
OBJECTS = st.lists(st.builds(lambda text, key: {"text": text, "id": key}, TEXT, IDS), max_size=6)
KINDS = (".csv", ".tsv", ".xlsx", ".parquet")

few = settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.generate])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sample_folder: Path) -> World:
    return World(tmp_path_factory.mktemp("edges"), sample_folder / "bilm")


def inputs(edge: Edge) -> st.SearchStrategy[list[Any]]:
    """Lists that an edge takes; the first line of a file says what it is."""
    text = TEXT if edge.has_lines else ONE_LINE
    text = text.map(lambda each: f"{each} x") if edge.takes == "texts" else text
    ids = st.text(max_size=5) if edge.takes == "objects" else IDS
    own = st.fixed_dictionaries({"text": text}, optional={"id": ids})
    others = st.dictionaries(st.sampled_from(edge.keys), VALUES, max_size=2)
    objects = st.builds(lambda one, other: {**one, **other}, others, own)
    drawn = objects if edge.takes != "values" else objects | objects | st.sampled_from(UNUSABLE)
    return st.lists(drawn, max_size=8).map(lambda each: [{"text": "Orla left."}, *each] if edge.is_file else each)


def check_equal(edge: Edge, found: Any, wanted: Any) -> None:
    """Also in the types of values."""
    if edge.is_table:
        assert {key for key in found | wanted if not is_cell(found.get(key), wanted.get(key))} == set()
        return
    assert found == wanted
    assert json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def count(numbers: list[int]) -> list[tuple[str, str]]:
    """How many there are and the first one, if there are any, as messages have them."""
    return [(str(len(numbers)), str(numbers[0]))] if numbers else []


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
@few
@given(data=st.data())
def test_as_many_come_out_as_go_in(edge: Edge, world: World, data: st.DataObject) -> None:
    """In their order, with all of their keys; what has no result says why, or is counted with its first place."""
    drawn = data.draw(inputs(edge))
    answers, expected = edge.send(world, drawn), [edge.expected(world, each) for each in drawn]
    if not edge.is_file:
        for found, wanted in zip(answers.found, expected, strict=True):
            if isinstance(wanted, str):
                assert wanted in found
            else:
                check_equal(edge, found, wanted)
        return
    results = [each for wanted in expected if not isinstance(wanted, str) for each in wanted]
    assert len(answers.found) == len(results)
    for found, wanted in zip(answers.found, results, strict=True):
        check_equal(edge, found, wanted)
    unusable = [number for number, wanted in enumerate(expected, start=1) if isinstance(wanted, str)]
    skipped = re.findall(r"skipped (\d+) unusable input\(s\):\n  \S*:(\d+): ", answers.said)
    assert skipped == count(unusable)
    if not edge.keeps_blank:
        blank = [number for number, wanted in enumerate(expected, start=1) if wanted == []]
        blank = [number for number in blank if edge.has_lines or drawn[number - 1]["text"].strip()]
        warned = re.findall(r"no result for (\d+) input\(s\) without text: number (\d+)", answers.said)
        assert warned == count(blank)


@pytest.mark.parametrize(("kind", "other"), [*zip(KINDS, KINDS, strict=True), (".csv", ".xlsx"), (".xlsx", ".parquet")])
@few
@given(data=st.data())
def test_the_cells_of_a_table_come_back(kind: str, other: str, world: World, data: st.DataObject) -> None:
    """With the label of their text and its probability at their end; a blank text has none, and is counted."""
    names = ["id", "text", *data.draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=3))]
    cell, digits = TEXT, st.text("0123456789", min_size=1, max_size=19)
    if kind == ".xlsx":  # openpyxl takes an escaped `_x000D_` for the character
        cell = TEXT.map(lambda text: text.replace("_x000D_", "\r"))
    elif kind != ".parquet":
        cell = ONE_LINE | TEXT.map(lambda text: re.sub("[\r\ufeff]", "", text))
    drawn = data.draw(st.lists(st.tuples(digits, *[cell] * (len(names) - 1)), max_size=6))
    rows: list[Any] = [("007", "Orla left it.", *["x"] * (len(names) - 2)), *drawn]
    source, target = edges.write_table(world.file(kind), [names, *rows]), world.file(other)
    form = {".csv": ("delimiter=,", "quotes=true"), ".tsv": ("delimiter=\t", "quotes=true")}.get(kind, ())
    changes = [word for setting in ("columns.text=text", *form) for word in ("--set", f"dataset_reader.{setting}")]
    said = world.predict(world.lengths, source, target, "--format", "reader", *changes)
    header, *found = edges.read_table(target)
    assert header == [*names, *(f"predicted_{name}" if name in names else name for name in ("label", "probability"))]
    unusable = 0
    for cells, row in zip(found, rows, strict=True):
        results = plain(world, {"text": row[1]}, "classifier")
        unusable += not results
        values = [*row, *((results[0]["label"], 0.75) if results else (None, None))]
        assert [value for cell, value in zip(cells, values, strict=True) if not is_cell(cell, value)] == []
    assert re.findall(r"skipped (\d+) unusable", said) == [str(unusable)] * bool(unusable)


@pytest.mark.parametrize("tool", ANNOTATED)
@few
@given(drawn=OBJECTS)
def test_annotations_are_the_same_out_and_in_again(tool: str, world: World, drawn: list[Any]) -> None:
    first, _ = edges.annotate(tool, world, world.file(".jsonl", [{"text": "Orla left."}, *drawn]))
    second, _ = edges.annotate(tool, world, first)
    found = [*edges.annotated(first)]
    assert found == [*edges.annotated(second)]
    assert len(found) == 1 + len(drawn)


@pytest.mark.parametrize("kind", KINDS)
@few
@given(drawn=OBJECTS)
def test_a_table_of_results_is_read_again(kind: str, world: World, drawn: list[Any]) -> None:
    """With the same texts and labels, by the reader of tables."""
    given = [{"text": "Orla left it."}, *(each for each in drawn if plain(world, each, "classifier"))]
    table = world.file(kind)
    world.predict(world.lengths, world.file(".jsonl", given), table)
    forms: dict[str, dict[str, Any]] = {".csv": {"delimiter": ","}, ".tsv": {"delimiter": "\t", "quotes": True}}
    form = {"type": "delimited", "task": "classification", **forms.get(kind, {})}
    reader = DatasetReaderConfig.model_validate(form).build()
    found = [(letters("".join(each["tokens"])), each["label"]) for each in reader.read(table)]
    results = world.classifier(given)
    assert found == [(letters("".join(each["tokens"])), each["label"]) for each in results]


@few
@given(drawn=OBJECTS)
def test_lines_of_results_are_read_again(world: World, drawn: list[Any]) -> None:
    given = [{"text": "Orla left."}, *(each for each in drawn if "-DOCSTART-" not in each["text"])]  # a border
    lines, again = world.file(".jsonl"), world.file(".jsonl")
    world.predict(world.names, world.file(".jsonl", given), lines)
    results = edges.read_lines(lines)
    tagged = [[each["tokens"], each["tags"]] for each in results]
    reader = DatasetReaderConfig.model_validate({"type": "jsonl", "task": "tagging"}).build()
    assert [[each["tokens"], each["tags"]] for each in reader.read(lines)] == tagged
    world.predict(world.names, lines, again, "--format", "reader")
    found = edges.read_lines(again)
    assert [[each["tokens"], each["tags"], each.get("id")] for each in found] == [
        [*pair, each.get("id")] for pair, each in zip(tagged, results, strict=True)
    ]
