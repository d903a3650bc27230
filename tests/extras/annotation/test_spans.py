"""Exports of annotation tools: spans become the tags of whole tokens, and what does not fit is named."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers import Parsing
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.annotation.spans import SpansConfig
from elmo_tasks.text.tag_schemes import spans_of_tags
from tests.data_readers.readers import ODD_FILES, Settings, build, problem, read, write
from tests.extras.annotation.annotation_exports import EXPORTS, TEXTS, annotation, document, label_studio, lines, task

SPANS: Settings = {"type": "spans"}


def found_spans(examples: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The labelled spans of examples, with all white space left out."""
    return [
        ("".join(example["tokens"][start : end + 1]), label)
        for example in examples
        for label, start, end in spans_of_tags(example["tags"])
    ]


# What is left out of their exports and counted.
LEFT_OUT = {
    "doccano_relations": {"relation(s)": 3},
    "label_studio": {"cancelled annotation(s)": 4, "annotation(s) of others": 4, "relation(s)": 2},
    "prodigy": {"text(s) with the answer 'reject'": 1, "text(s) with the answer 'ignore'": 1},
    "brat": {"relation(s)": 4, "event(s)": 4, "attribute(s)": 4, "note(s)": 4},
    "webanno": {"other layer(s)": 4},
}
# The tools whose names are not those of the exports.
TOOLS = {"doccano_relations": "doccano", "label_studio": "Label Studio", "webanno": "INCEpTION or WebAnno"}
EXPECTED = [("".join(part.split()), label) for _, spans in TEXTS for part, label in spans]


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.__name__)
def test_every_tool_gives_the_same_spans(
    export: Callable[[Path], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))  # no other test has read the file
    caplog.set_level("INFO", "elmo_tasks")
    reader, path = SpansConfig(tokenizer="unicode").build(), export(tmp_path)
    examples = reader.read(path).to_list()
    assert found_spans(examples) == EXPECTED
    left_out = re.findall(f"{re.escape(str(path))}: (\\d+) (.*) \\(first: .*\\) left out", caplog.text)
    assert {what: int(number) for number, what in left_out} == LEFT_OUT.get(export.__name__, {})
    named = re.findall(f"{re.escape(str(path))}: read as an export of (.*)", caplog.text)
    assert [tool.lower() for tool in named] == [TOOLS.get(export.__name__, export.__name__.split("_")[0]).lower()]
    if path.is_dir():
        assert [(each["file"], each["line"]) for each in examples] == [(each["document"], 1) for each in examples]
    for number, (text, _) in enumerate(TEXTS):
        tokens = [token for each in examples if each["document"] == number for token in each["tokens"]]
        assert "".join(tokens) == "".join(text.split())
    texts = [text for text in reader.texts(path, Parsing(needs_labels=False)) if not text.missing]
    cut = [("".join(text.text[start:end].split()), label) for text in texts for start, end, label, *_ in text.spans]
    assert cut == EXPECTED


def asked(start: int, end: int, label: str, **more: Any) -> dict[str, Any]:
    """A span of Prodigy."""
    return {"start": start, "end": end, "label": label, **more}


REMEDY = "on_error can be 'widen' (to whole tokens), 'drop' (the span) or 'skip' (the text)"
MIRA = "Mira left Oslo."
PER, LOC = ([{"start": start, "end": end, "labels": [label]}] for start, end, label in ((0, 4, "PER"), (10, 14, "LOC")))
FOUND = [("Mira", "PER")]
TSV = "#FORMAT=WebAnno TSV 3.3\n#T_SP=a.NamedEntity|identifier|value\n#T_SP=b.Place|kind\n#T_RL=b.Knows|kind\n\n"
PART = "1-1\t0-8\tMiraLund\t_\t_\t_\t_\n1-1.1\t0-4\tMira\t_\tORG\t_\t_\n"
ROW = {"text": MIRA, "answer": "accept"}
# Files as people have them, with the settings and the spans that are read.
ODD: dict[str, tuple[Any, Settings, list[Any]]] = {
    "several annotators": ([task(MIRA, annotation(LOC, was_cancelled=True), *map(annotation, (PER, PER)))], {}, FOUND),
    "not annotated": ([task(MIRA, annotation(PER)), task("To do.", predictions=[annotation(LOC)])], {}, FOUND),
    "nothing in it": ([task(MIRA, annotation([])), task(MIRA, annotation(PER))], {}, FOUND),
    "a text box": ([task(MIRA, annotation([*PER, {"text": ["a remark"]}]))], {}, FOUND),
    "other keys": ([{"data": {"body": MIRA}, "annotations": [annotation(PER)]}],
                   {"columns": {"text": "body", "label": "label"}}, FOUND),
    "one object": (task(MIRA, annotation(PER)), {"columns": {"label": "other"}}, []),
    "escaped line break": ([task("Mira\nLund.", annotation([{**PER[0], "end": 9, "text": "Mira\\nLund"}]))], {}, [
        ("MiraLund", "PER")]),
    "JSON-MIN": ([{"id": 1, "text": MIRA, "label": PER, "annotator": 1, "annotation_id": 1}], {}, FOUND),
    "doccano of old": ([{"text": MIRA, "annotations": [{"label": 3, "start_offset": 0, "end_offset": 4, "user": 1}]}],
                       {}, [("Mira", "3")]),
    "own keys": ([{"title": "x", "body": MIRA, "label": ["no"], "names": [[0, 4, "PER"]]}],
                 {"columns": {"text": "body", "label": "names"}}, FOUND),
    "a blank in it": ([{"text": MIRA, "label": [[0, 5, "PER"]]}], {}, FOUND),
    "empty text": ([{"text": "", "label": []}, {"text": MIRA, "label": [[0, 4, "PER"]]}], {}, FOUND),
    "accepted, without spans": ([{**ROW, "text": "Yes."}, {**ROW, "spans": [asked(0, 4, "PER")]}], {}, FOUND),
    "over several sentences": ([{"text": "Oh. Mira left. She ran. So.", "label": [[4, 22, "EVENT"]]}], {}, [
        ("Miraleft.Sheran", "EVENT")]),
    "twice": ([{"text": MIRA, "label": [[0, 4, "PER"]] * 2}], {}, FOUND),
    "emoji": ([{"text": "😀 Mira.", "label": [[3, 7, "PER"]]}], {"offsets": "utf-16", "tokenizer": "unicode"}, FOUND),
    "two layers": (f"{TSV}1-1\t0-4\tMira\t*\tPER\ttown\t_\n", {}, FOUND),
    "the other layer": (f"{TSV}1-1\t0-4\tMira\t*\tPER\ttown\\_1\t_\n", {"columns": {"label": "Place.kind"}}, [
        ("Mira", "town_1")]),
    "spaCy on lines": (f'["{MIRA}", {{"entities": [[0, 4, "PER"]]}}]\n["So.", {{"entities": []}}]\n', {}, FOUND),
    "spaCy on a line": (f'["{MIRA}", {{"entities": [[0, 4, "PER"]]}}]\n', {}, FOUND),
    "a backslash": (f"{TSV}1-1\t0-4\tMi\\\\ra\t*\tPER\t_\t_\n", {}, [("Mi\\ra", "PER")]),
    "Windows line ends": (f"{TSV}1-1\t0-4\tMira\t*\tPER\t_\t_\n".replace("\n", "\r\n"), {}, FOUND),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_files_as_people_have_them(name: str, tmp_path: Path) -> None:
    content, settings, expected = ODD[name]
    path = write(tmp_path / "a.json", content if isinstance(content, (str, bytes)) else json.dumps(content))
    assert found_spans(read(path, SPANS | settings)) == expected


SHAPE = "expected a label, or a start, an end and a label"
NO_TEXT = "expected a text of doccano, Label Studio, Prodigy, spaCy or GLiNER, or 'columns' that name its key"
WRONG: dict[str, tuple[Any, str]] = {
    "no tool": ([{"a": 1}], f": record 1: no string 'text' among a; {NO_TEXT}"),
    "JSON-MIN with another key": ([{"body": MIRA, "label": PER, "annotation_id": 1}],
                                  f": record 1: no string 'text' among body, label, annotation_id; {NO_TEXT}"),
    "a key of their own": ([{"data": {"body": MIRA}}], f": record 1: no string 'text' among body; {NO_TEXT}"),
    "two ends": ([{"text": MIRA, "label": [[0, 4]]}], f": record 1: the annotation is [0, 4]; {SHAPE}"),
    "GLiNER 2": ([{"text": MIRA, "entities": {"PER": ["Mira"]}}],
                 f": record 1: the annotation is {{'PER': ['Mira']}}; {SHAPE}"),
    "broken": ([{"data": {"text": "a"}, "annotations": [5]}], ": record 1: AttributeError: 'int' object has no "
               "attribute 'get'; expected an export of an annotation tool"),
    "too few tokens": ([{"tokenized_text": ["Mira"], "ner": [[0, 2, "PER"]]}],
                       f": record 1: the span 0-2 'Mi' (PER) is not within the 1 tokens of its text; {REMEDY}"),
    "another layer": ("#FORMAT=WebAnno TSV 3.2\n#T_SP=a.Place|kind\n\n1-1\t0-1\tA\t_\n",
                      ": the layers and features are Place.kind; expected NamedEntity.value, or another as 'label' in "
                      "'columns'"),
    "TSV in pieces": (f"{TSV}{PART}",
                      f":7: the span 0-8 'MiraLund' (ORG) is a part of a token; {REMEDY}"),
    "a value for each token": (f"{TSV}1-1\t0-4\tMira\t_\tB-PER[1]\t_\t_\n1-2\t5-9\tLund\t_\tI-PER[1]\t_\t_\n",
                               f":7: the span 0-9 'Mira Lund' (I-PER) has the values 'B-PER' and 'I-PER'; {REMEDY}"),
    "another annotation by the same person": ([task(MIRA, *map(annotation, (PER, LOC)))],
                                              ": record 1: the text has other annotations at FILE: record 1; keep one "
                                              "of them"),
    "annotated by hand twice": ([{**ROW, "_view_id": "ner_manual", "spans": each} for each in ([], [asked(0, 4, "X")])],
                                ": record 2: the text has other annotations at FILE: record 1; keep one of them"),
    "text": ("Mira left.\n", ":1: looks like JSON; expected text, a paragraph or a sentence on each line; without "
             "--output-format, `predict --format reader` reads it as the data of the run"),
    "another unit": ([{"text": "😀 Mira.", "label": [[3, 7, "PER"]]}],
                     f": record 1: the span 3-7 'ira.' (PER) begins within the token 'Mira'; {REMEDY}; or the tool "
                     "counts UTF-16 units: set offsets: 'utf-16'"),
    "nothing found out": ([{"text": MIRA}], ": has no example; 1 text(s) without an annotation (first: FILE: record 1) "
                                            "left out"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read(name: str, tmp_path: Path) -> None:
    content, expected = WRONG[name]
    path = write(tmp_path / "a.json", content if isinstance(content, (str, bytes)) else json.dumps(content))
    assert problem(path, SPANS).replace(str(path), "FILE") == expected


TEXT = "Mira Dolvane left. preKarvel"
# A span or two of the text, what is wrong, and what 'widen' and 'drop' make of them.
FAULTS: list[tuple[list[list[Any]], str, list[str], list[str]]] = [
    ([[22, 28, "ORG"]], "the span 22-28 'Karvel' (ORG) begins within the token 'preKarvel'", ["preKarvel"], []),
    ([[0, 7, "PER"]], "the span 0-7 'Mira Do' (PER) ends within the token 'Dolvane'", ["MiraDolvane"], []),
    ([[0, 12, "PER"], [5, 12, "LOC"]], "the span 5-12 'Dolvane' (LOC) overlaps the span 0-12 'Mira Dolvane' (PER)",
     ["MiraDolvane"], ["MiraDolvane"]),
    ([[3, 3, "PER"]], "the span 3-3 '' (PER) has no token, in a text of 28 characters", [], []),
    ([[4, 5, "PER"]], "the span 4-5 ' ' (PER) has no token, in a text of 28 characters", [], []),
    ([[20, 40, "PER"]], "the span 20-40 '' (PER) has no token, in a text of 28 characters", [], []),
    ([[-4, 4, "PER"]], "the span -4-4 '' (PER) has no token, in a text of 28 characters", [], []),
]  # fmt: skip


@pytest.mark.parametrize(("spans", "fault", "widened", "dropped"), FAULTS, ids=[each[1] for each in FAULTS])
def test_spans_that_do_not_fit(
    spans: list[list[Any]], fault: str, widened: list[str], dropped: list[str], tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    path = lines(tmp_path / "a.jsonl", [{"text": "It rained.", "label": []}, {"text": TEXT, "label": spans}])
    assert problem(path, SPANS) == f":2: {fault}; {REMEDY}"
    caplog.set_level(logging.INFO)
    for action, expected in (("widen", widened), ("drop", dropped)):
        examples = read(path, SPANS | {"on_error": action})
        assert [text for text, _ in found_spans(examples)] == expected
        assert len(examples) == 3
        is_wider = f"{path}: 1 span(s) widened to whole tokens (first: {path}:2, " in caplog.text
        assert is_wider == (widened != dropped)
    assert f"{path}: 1 span(s) that do not fit the tokens (first: {path}:2) left out" in caplog.text
    caplog.clear()
    assert [each["line"] for each in read(path, SPANS | {"on_error": "skip"})] == [1]
    assert f"{path}:2: {fault}\n" in f"{caplog.text}\n"


# The text and the notes of brat, with what is read or what is wrong with a line.
BRAT: dict[str, tuple[bytes, str, Any]] = {
    "Windows line ends": (b"Mira left.\r\nTavo came.", "T1\tPER 12 16\tTavo\r\nA1\tNeg T1\r\n", [("Tavo", "PER")]),
    "byte order mark": (b"\xef\xbb\xbfMira left.", "T1\tPER 1 5\tMira\n", FOUND),
    "their line ends changed": (b"Mira left.\r\nTavo.", "T1\tPER 11 15\tTavo\n",
                                f"1: the span 11-15 '\\nTav' (PER) is 'Tavo' in the tool; {REMEDY}"),
    "in pieces": (b"Tavo, Orla, Ida.", "T1\tPER 0 4;6 10;12 15\tTavo Orla Ida\n",
                  f"1: the span 0-15 'Tavo, Orla, Ida' (PER) is in pieces, 0 4;6 10;12 15; {REMEDY}"),
    "nested": (b"New York Times.", "T2\tORG 0 14\tNew York Times\nT1\tLOC 0 8\tNew York\n",
               f"2: the span 0-8 'New York' (LOC) overlaps the span 0-14 'New York Times' (ORG); {REMEDY}"),
    "tabs": (b"Mira left.", "T1\tPER\t0 4\tMira\n",
             "1: 'T1\\tPER\\t0 4\\tMira'; expected T1, LABEL START END, and the text, with tabs"),
}  # fmt: skip


@pytest.mark.parametrize("name", BRAT)
def test_files_of_brat(name: str, tmp_path: Path) -> None:
    text, notes, expected = BRAT[name]
    path, own = write(tmp_path / "a.txt", text), write(tmp_path / "a.ann", notes)
    for source in (path, own, tmp_path):
        if isinstance(expected, list):
            assert found_spans(read(source, SPANS)) == expected
        else:
            with pytest.raises(ElmoTasksError) as caught:
                read(source, SPANS)
            assert str(caught.value) == f"{own}:{expected}"


@pytest.mark.parametrize(("unit", "place", "width"), [("utf-16", "3-16", 2), ("utf-8", "5-18", 1)])
def test_offsets_that_are_not_characters_are_seen(unit: str, place: str, width: int, tmp_path: Path) -> None:
    path = label_studio(tmp_path, "utf-16-le" if width == 2 else unit, width)
    settings = SPANS | {"tokenizer": "unicode"}
    found = f"the span {place} is 'Mira  Dolvane' in {unit}, not in characters; set offsets: '{unit}'"
    assert problem(path, settings | {"on_error": "skip"}) == f": record 1: {found}"
    assert found_spans(read(path, settings | {"offsets": unit})) == EXPECTED


# A text with a label, by the name of the tool.
LABELLED: dict[str, Callable[[str, str], Any]] = {
    "doccano": lambda text, label: {"text": text, "label": [label]},
    "doccano of old": lambda text, label: {"text": text, "labels": [label]},
    "Label Studio": lambda text, label: task(text, annotation([{"choices": [label]}])),
    "JSON-MIN": lambda text, label: {"text": text, "annotation_id": 1, "label": label},
    "Prodigy": lambda text, label: {"text": text, "accept": [label], "answer": "accept"},
    "spaCy": lambda text, label: [text, {"cats": {label: 0.5, "other": 0.49}}],
}


@pytest.mark.parametrize("tool", LABELLED)
def test_labels_of_whole_texts(tool: str, tmp_path: Path) -> None:
    rows = [LABELLED[tool](text, label) for text, label in (("Warm.", "good"), ("Cold.", "bad"))]
    path = document(tmp_path / "a.json", rows)
    examples = read(path, SPANS | {"task": "classification"})
    assert [(each["tokens"], each["label"]) for each in examples] == [(["Warm", "."], "good"), (["Cold", "."], "bad")]
    assert [each["labels"] for each in read(path, SPANS | {"task": "multi_label"})] == [["good"], ["bad"]]


def test_annotations_of_the_other_kind_and_missing_labels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rows = [{"text": "Mira left.", "label": [[0, 4, "PER"], "good"]}, {"text": "Cold.", "label": []}]
    path = lines(tmp_path / "a.jsonl", rows)
    assert found_spans(read(path, SPANS)) == [("Mira", "PER")]
    assert f"{path}: 1 label(s) of whole texts (first: {path}:1) left out" in caplog.text
    assert len(read(path, SPANS | {"task": "classification"})) == 1
    assert f"{path}: 1 span(s) (first: {path}:1) left out" in caplog.text
    assert f"{path}: 1 row(s) without a gold label (first: {path}:2) left out" in caplog.text
    lines(path, [{"text": "Warm.", "label": ["good", "short"]}])
    with pytest.raises(DataError, match=r"a\.jsonl:1: the label is \['good', 'short'\]; expected a string"):
        read(path, SPANS | {"task": "classification"})
    labels: list[Any] = [{}, ["PER"]]
    for label in labels:
        lines(path, [{"text": "Mira left.", "label": [[0, 4, label]]}] * 2)
        assert problem(path, SPANS) == f":1: the label of a span is {label}; expected a string"
    table = write(tmp_path / "a.csv", "id,data,label\n1,Warm.,C#\n2,Cold.,bad#short\n")
    several = ": record 2: 'bad#short' can be several labels, which doccano joins in tables; export JSON lines"
    assert problem(table, SPANS | {"task": "multi_label"}) == several
    assert problem(write(tmp_path / "b" / "a.xmi", "").parent, SPANS).startswith(": the folder has no text with .ann")


def test_texts_to_predict_need_no_annotations(tmp_path: Path) -> None:
    path = label_studio(tmp_path)
    document(path, [{"data": each["data"]} for each in json.loads(path.read_text())])
    assert [each["tokens"] for each in build(SPANS).unlabelled(str(path))][-1] == ["Nothing", "was", "said", "."]


MIRA_LEFT = "Mira left. She ran."
ITEMS: list[tuple[Any, dict[str, Any]]] = [
    ({"id": 7, "Comments": [], "text": MIRA_LEFT, "label": [[0, 4, "PER"]]}, {"id": 7, "Comments": []}),
    ({"text": MIRA_LEFT, "_input_hash": -(10**18), "spans": []}, {"_input_hash": -(10**18)}),
    (task(MIRA_LEFT, annotation([])), {"id": 7}),
    ({"id": 7, "data": {"id": "own", "text": MIRA_LEFT}}, {"id": 7, "data": {"id": "own"}}),
    ([MIRA_LEFT, {"entities": [], "id": 7}], {"id": 7}),
    ({"id": 7, "tokenized_text": MIRA_LEFT.split(), "ner": [[0, 0, "PER"]]}, {"id": 7}),
]


@pytest.mark.parametrize(("item", "others"), ITEMS)
def test_texts_to_predict_keep_the_other_keys_of_their_items(item: Any, others: Any, tmp_path: Path) -> None:
    path = document(tmp_path / "a.json", [item])
    sentences = list(build(SPANS).unlabelled(str(path)))
    (whole,) = build(SPANS | {"task": "classification"}).unlabelled(str(path))
    assert [each["others"] for each in (whole, *sentences)] == [others] * (1 + len(sentences))
    assert whole["input"] == {"text": MIRA_LEFT}


def test_odd_files() -> None:
    examples = read(ODD_FILES / "doccano.jsonl", SPANS)
    assert [each["document"] for each in examples] == [0, 0, 1, 2]
    assert [label for _, label in found_spans(examples)] == ["PER", "ORG", "LOC", "PER", "ORG"]
    (example,) = read(ODD_FILES / "label_studio.json", SPANS)
    assert [label for _, label in found_spans([example])] == ["PER", "ORG"]
    fault = "the span 3-7 'Mira' (PER) begins within the token 'preMira'"
    assert problem(ODD_FILES / "spacy_tuples.json", SPANS) == f": record 2: {fault}; {REMEDY}"
    for name in ("prodigy_span_answers.jsonl", "inception_null.tsv", "ls_ground_truth.json"):
        found = [("Dana", "PER"), ("Lyon", "LOC")] if name.startswith("prodigy") else [("Dana", "PER")]
        assert found_spans(read(ODD_FILES / name, SPANS)) == found
    assert "2 partial answer(s)" in problem(ODD_FILES / "prodigy_teach.jsonl", SPANS)
