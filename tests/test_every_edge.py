"""What holds for everything that takes a user's list, file or table and gives one back."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from elmo_tasks.data_readers import DatasetReaderConfig
from tests.edges import (
    ANNOTATED,
    COLUMNS,
    EDGES,
    LENGTHS,
    NAMES,
    Edge,
    World,
    alone,
    annotate,
    annotated,
    is_cell,
    letters,
    read_lines,
    same,
    table_to_table,
    write_lines,
)

PIECES = ["Orla", "Tavo Lund", "met", "it.", "He left. She Sang!", "Über", "e\u0301", "😀", "👩\u200d👧", "<b>&", "{"]
PIECES += [" ", "  ", "\u00a0", "\n", "\r\n", "\t", "\u200b", "\x07", "\x7f", "\x85", "\u2028", "\ufeff", "\uffff"]
PIECES += ['"', "''", "'x", "„so“", ",", ";", "|", "\\n", "=1", "#N/A", "_x000D_", "-DOCSTART-", "null"]
PIECES += ["TRUE", "0.10", "007", "1582218195625938945"]
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)
TEXT = st.lists(st.sampled_from(PIECES) | ANY, max_size=6).map("".join)
ONE_LINE = TEXT.map(lambda text: re.sub("[\r\n\ufeff]", " ", text))
NUMBERS = st.integers() | st.sampled_from([1582218195625938945, 2**70, -0.5, 0.1, 1e-7, 12345678901234.5])
IDS = NUMBERS | TEXT | st.none()
VALUES = IDS | st.booleans() | st.lists(NUMBERS | TEXT, max_size=2) | st.dictionaries(TEXT, NUMBERS, max_size=2)
UNUSABLE: list[Any] = [None, 3, True, "Orla", ["Orla"], {}, {"id": 7}, {"text": None, "id": "a"}, {"text": 3}]
UNUSABLE += [{"tokens": []}, {"tokens": ["Orla", ""]}, {"text": "a", "tokens": ["a"]}]


def inputs(edge: Edge) -> st.SearchStrategy[list[Any]]:
    """Lists that an edge takes."""
    text = TEXT if edge.has_lines else ONE_LINE
    if edge.takes == "texts":
        text = text.filter(lambda each: bool(each.strip())).map(lambda each: f"{each} x")
    ids = st.text(max_size=5) if edge.takes == "objects" else IDS
    objects = st.builds(
        lambda others, text, more: {**others, "text": text, **more},
        st.dictionaries(st.sampled_from(edge.keys), VALUES, max_size=2),
        text,
        st.fixed_dictionaries({}, optional={"id": ids}),
    )
    lists = st.lists(objects if edge.takes != "values" else objects | objects | st.sampled_from(UNUSABLE), max_size=8)
    first = [{"text": "Orla left."}] if edge.is_file else []  # the first line says what a file is
    return lists.map(lambda drawn: [*first, *drawn])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sample_folder: Path) -> World:
    return World(tmp_path_factory.mktemp("edges"), sample_folder / "bilm")


def check(edge: Edge, world: World, given: list[Any]) -> None:
    answers = edge.send(world, given)
    expected = [edge.expected(world, number, each) for number, each in enumerate(given, start=1)]
    if not edge.is_file:
        assert len(answers.found) == len(given)
        for found, wanted in zip(answers.found, expected, strict=True):
            if isinstance(wanted, str):
                assert wanted in found
            else:
                assert found == wanted
                assert same(found, wanted)
        return
    results = [each for wanted in expected if not isinstance(wanted, str) for each in wanted]
    assert len(answers.found) == len(results)
    for found, wanted in zip(answers.found, results, strict=True):
        if edge.is_table:
            assert {key for key in found | wanted if not is_cell(found.get(key), wanted.get(key))} == set()
        else:
            assert found == wanted
            assert same(found, wanted)
    said = answers.said
    unusable = [number for number, wanted in enumerate(expected, start=1) if isinstance(wanted, str)]
    assert bool(unusable) == ("skipped" in said)
    if unusable:
        assert re.search(rf"skipped {len(unusable)} unusable input\(s\):\n  \S*:{unusable[0]}: ", said)
    if edge.keeps_blank:
        return
    blank = [number for number, wanted in enumerate(expected, start=1) if wanted == []]
    blank = [number for number in blank if edge.has_lines or given[number - 1]["text"].strip()]
    assert bool(blank) == ("without text" in said)
    if blank:
        assert f"no result for {len(blank)} input(s) without text: number {', '.join(map(str, blank[:3]))}" in said


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
@settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_as_many_come_out_as_go_in(edge: Edge, world: World, data: st.DataObject) -> None:
    check(edge, world, data.draw(inputs(edge)))


KINDS = (".csv", ".tsv", ".xlsx", ".parquet")


@pytest.mark.parametrize(("kind", "other"), [*zip(KINDS, KINDS, strict=True), (".csv", ".xlsx"), (".xlsx", ".parquet")])
@settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_the_cells_of_a_table_come_back(kind: str, other: str, world: World, data: st.DataObject) -> None:
    """With the label of their text and its probability at their end."""
    names = ["id", "text", *data.draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=3))]
    cell = TEXT if kind in (".xlsx", ".parquet") else ONE_LINE | TEXT.map(lambda text: re.sub("[\r\ufeff]", "", text))
    if kind == ".xlsx":  # openpyxl takes an escaped `_x000D_` for the character
        cell = cell.map(lambda text: text.replace("_x000D_", "\r"))
    row = st.tuples(st.text("0123456789", min_size=1, max_size=19), *[cell] * (len(names) - 1))
    rows = [("007", "Orla left it.", *["x"] * (len(names) - 2)), *data.draw(st.lists(row, max_size=6))]
    (header, *found), said = table_to_table(kind, other, world, [names, *rows])
    added = [f"predicted_{name}" if name in names else name for name in ("label", "probability")]
    assert header == [*names, *added]
    assert len(found) == len(rows)
    unusable = 0
    for cells, given_cells in zip(found, rows, strict=True):
        results = alone(LENGTHS, world, {"text": given_cells[1]})
        unusable += not results
        values = [results[0]["label"], 0.75] if results else [None, None]
        wanted = [*given_cells, *values]
        assert [value for cell, value in zip(cells, wanted, strict=True) if not is_cell(cell, value)] == []
    assert (f"skipped {unusable} unusable input(s)" in said) == bool(unusable)


OBJECTS = st.lists(st.builds(lambda text, key: {"text": text, "id": key}, TEXT, IDS), max_size=6)


@pytest.mark.parametrize("tool", ANNOTATED)
@settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.generate])
@given(drawn=OBJECTS)
def test_annotations_are_the_same_out_and_in_again(tool: str, world: World, drawn: list[dict[str, Any]]) -> None:
    first, _ = annotate(tool, world, write_lines(world.file(".jsonl"), [{"text": "Orla left."}, *drawn]))
    second, _ = annotate(tool, world, first)
    assert [*annotated(first)] == [*annotated(second)]
    assert len([*annotated(second)]) == 1 + len(drawn)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.generate])
@given(drawn=OBJECTS)
def test_a_table_of_results_is_read_again(kind: str, world: World, drawn: list[dict[str, Any]]) -> None:
    """With the same texts and labels, by the reader of tables."""
    drawn = [{"text": "Orla left it."}, *(each for each in drawn if alone(LENGTHS, world, each))]
    table = world.file(kind)
    world.predict(LENGTHS, write_lines(world.file(".jsonl"), drawn), "--output", str(table))
    form = {".csv": {"delimiter": ","}, ".tsv": {"delimiter": "\t", "quotes": True}}.get(kind, {})
    reader = {"type": "delimited", "task": "classification", **form}
    examples = DatasetReaderConfig.model_validate(reader).build().read(table).to_list()
    results = [alone(LENGTHS, world, each)[0] for each in drawn]
    assert [each["label"] for each in examples] == [each["label"] for each in results]
    for example, result in zip(examples, results, strict=True):
        assert letters("".join(example["tokens"])) == letters("".join(result["tokens"]))


@settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.generate])
@given(drawn=OBJECTS)
def test_lines_of_results_are_read_again(world: World, drawn: list[dict[str, Any]]) -> None:
    drawn = [{"text": "Orla left."}, *(each for each in drawn if "-DOCSTART-" not in each["text"])]  # a border
    lines, again = world.file(".jsonl"), world.file(".jsonl")
    world.predict(NAMES, write_lines(world.file(".jsonl"), drawn), "--output", str(lines))
    results = read_lines(lines)
    reader = DatasetReaderConfig.model_validate({"type": "jsonl", "task": "tagging"}).build()
    tagged = [[each["tokens"], each["tags"]] for each in results]
    assert [[each["tokens"], each["tags"]] for each in reader.read(lines)] == tagged
    world.predict(NAMES, lines, "--format", "reader", "--output", str(again))
    assert [[each["tokens"], each["tags"]] for each in read_lines(again)] == tagged
    assert [each.get("id") for each in read_lines(again)] == [each.get("id") for each in results]
