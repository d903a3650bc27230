"""Exports of annotation tools: spans become the tags of whole tokens, and what does not fit is named."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.text.tag_schemes import spans_of_tags
from tests.data_readers.annotation_exports import EXPORTS, TEXTS, document, label_studio, lines
from tests.data_readers.readers import Settings, build, read, write

SPANS: Settings = {"type": "spans"}


def found_spans(examples: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The labelled spans of examples, with all white space left out."""
    return [
        ("".join(example["tokens"][start : end + 1]), label)
        for example in examples
        for label, start, end in spans_of_tags(example["tags"])
    ]


EXPECTED = [("".join(part.split()), label) for _, spans in TEXTS for part, label in spans]


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.__name__)
def test_every_tool_gives_the_same_spans(
    export: Callable[[Path], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    examples = list(build(SPANS | {"tokenizer": "unicode"}).examples(export(tmp_path)))  # not from the cache
    assert found_spans(examples) == EXPECTED
    texts = [text for text, _ in TEXTS]
    for document_number, text in enumerate(texts):
        tokens = [token for each in examples if each["document"] == document_number for token in each["tokens"]]
        assert "".join(tokens) == "".join(text.split())
    assert sum("the format is that of " in message for message in caplog.messages) == 1


TSV = """\
#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value
#T_RL=webanno.custom.Knows|kind|BT_de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity


#Text=😀 Mira Dolvane joined Karvel.
1-1\t0-2\t😀\tSYM\t_\t_\t_\t_\t
1-2\t3-7\tMira\tNNP\t*[1]\tPER[1]\t_\t_\t
1-3\t8-15\tDolvane\tNNP\t*[1]\tPER[1]\tfriend\t1-2\t
1-4\t16-22\tjoined\tVBD\t_\t_\t_\t_\t
1-5\t23-29\tKarvel\tNNP\tQ1\tORG\\_1\t_\t_\t
1-6\t29-30\t.\t.\t_\t_\t_\t_\t

#Text=Oslo slept.
2-1\t31-35\tOslo\tNNP\t*\tLOC\t_\t_\t
2-2\t36-41\tslept\tVBD\t_\t_\t_\t_\t
"""
GLINER = [
    {"tokenized_text": ["Mira", "Dolvane", "joined", "Karvel", "."], "ner": [[0, 1, "PER"], [3, 3, "ORG"]]},
    {"tokenized_text": ["Oslo", "slept", "."], "ner": [[0, 0, "LOC"]]},
]


@pytest.mark.parametrize(("name", "content"), [("tokens.json", json.dumps(GLINER)), ("a.tsv", TSV)])
def test_tokens_of_a_tool_stay_as_they_are(name: str, content: str, tmp_path: Path) -> None:
    first, second = read(write(tmp_path / name, content), SPANS)
    assert [token for token in first["tokens"] if token != "😀"] == ["Mira", "Dolvane", "joined", "Karvel", "."]
    label = "ORG_1" if name == "a.tsv" else "ORG"
    assert found_spans([first, second]) == [("MiraDolvane", "PER"), ("Karvel", label), ("Oslo", "LOC")]
    assert second["sentence"] == (name == "a.tsv")  # of the same document


def test_another_layer_of_a_tsv_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "x.tsv", TSV)
    examples = read(path.parent, SPANS | {"columns": {"label": "POS"}})
    assert [token for token, _ in found_spans(examples)][:3] == ["😀", "Mira", "Dolvane"]
    examples = read(path.parent, SPANS | {"columns": {"label": "NamedEntity.identifier"}})
    assert found_spans(examples) == [("Karvel", "Q1")]
    with pytest.raises(DataError) as caught:
        read(path, SPANS | {"columns": {"label": "Place"}})
    known = "POS.PosValue, NamedEntity.identifier, NamedEntity.value"
    problem = f"the layers of spans are {known}; expected 'Place', or another as 'label' in the reader's columns"
    assert str(caught.value) == f"{path}: {problem}"


ODD = """[["Mira Dolvane joined Karvel.", {"entities": [[0, 12, "PER"], [20, 26, "ORG"]]}],
 ["preMira left.", {"entities": [[3, 7, "PER"]]}]]
"""
REMEDY = "on_error can be 'widen' (to whole tokens), 'drop' (the span) or 'skip' (the text)"
TEXT = "Mira Dolvane left. preKarvel"
# The spans of the text, what is wrong, and what 'widen' and 'drop' make of them.
FAULTS: list[tuple[list[list[Any]], str, list[str], list[str]]] = [
    ([[22, 28, "ORG"]], "the span 22-28 'Karvel' (ORG) begins within the token 'preKarvel'", ["preKarvel"], []),
    ([[0, 7, "PER"]], "the span 0-7 'Mira Do' (PER) ends within the token 'Dolvane'", ["MiraDolvane"], []),
    ([[0, 12, "PER"], [5, 12, "LOC"]], "the span 5-12 'Dolvane' (LOC) overlaps the span 0-12 'Mira Dolvane' (PER)",
     ["MiraDolvane"], ["MiraDolvane"]),
    ([[3, 3, "PER"]], "the span 3-3 '' (PER) has no token, in a text of 28 characters", [], []),
    ([[4, 5, "PER"]], "the span 4-5 ' ' (PER) has no token, in a text of 28 characters", [], []),
    ([[20, 40, "PER"]], "the span 20-40 '' (PER) has no token, in a text of 28 characters", [], []),
]  # fmt: skip


@pytest.mark.parametrize(("spans", "problem", "widened", "dropped"), FAULTS, ids=[each[1] for each in FAULTS])
def test_spans_that_do_not_fit(
    spans: list[list[Any]], problem: str, widened: list[str], dropped: list[str], tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    path = lines(tmp_path / "a.jsonl", [{"text": "It rained.", "label": []}, {"text": TEXT, "label": spans}])
    with pytest.raises(DataError) as caught:
        read(path, SPANS)
    assert str(caught.value) == f"{path}:2: {problem}; {REMEDY}"
    caplog.set_level(logging.INFO)
    for action, expected in (("widen", widened), ("drop", dropped)):
        examples = read(path, SPANS | {"on_error": action})
        assert [text for text, _ in found_spans(examples)] == expected
        assert len(examples) == 3
    assert f"{path}: 1 span(s) that do not fit the tokens left out" in caplog.text
    assert (f"{path}: 1 span(s) widened to whole tokens" in caplog.text) == ("within" in problem)
    caplog.clear()
    assert [each["line"] for each in read(path, SPANS | {"on_error": "skip"})] == [1]
    assert f"{path}:2: {problem}\n" in f"{caplog.text}\n"


def test_a_record_of_an_array_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", ODD)
    with pytest.raises(DataError) as caught:
        read(path, SPANS)
    problem = "the span 3-7 'Mira' (PER) begins within the token 'preMira'"
    assert str(caught.value) == f"{path}:2: record 2: {problem}; {REMEDY}"
    examples = read(path, SPANS | {"on_error": "widen"})
    assert [(each["line"], *found_spans([each])) for each in examples] == [
        (1, ("MiraDolvane", "PER"), ("Karvel", "ORG")),
        (2, ("preMira", "PER")),
    ]


def test_brat_and_tsv_name_the_line_of_a_span(tmp_path: Path) -> None:
    text = write(tmp_path / "a.txt", "Mira met Tavo and Orla.\n")
    notes = write(tmp_path / "a.ann", "T1\tPER 0 4\tMira\nT2\tPER 9 13;18 22\tTavo Orla\n")
    for path in (text, notes, tmp_path):
        with pytest.raises(DataError) as caught:
            read(path, SPANS)
        problem = "the span 9-22 'Tavo and Orla' (PER) is in pieces, 9 13;18 22"
        assert str(caught.value) == f"{notes}:2: {problem}; {REMEDY}"
    assert found_spans(read(text, SPANS | {"on_error": "drop"})) == [("Mira", "PER")]
    notes.write_text("T1\tPER\t0 4\tMira\n")
    with pytest.raises(DataError) as caught:
        read(text, SPANS)
    expected = "expected T1, LABEL START END, and the text, with tabs"
    assert str(caught.value) == f"{notes}:1: 'T1\\tPER\\t0 4\\tMira'; {expected}"
    path = write(
        tmp_path / "a.tsv",
        TSV.replace(
            "2-1\t31-35\tOslo\tNNP\t*\tLOC", "2-1\t31-35\tOslo\tNNP\t_\t_\t_\t_\t\n2-1.1\t31-33\tOs\t_\t*\tLOC"
        ),
    )
    with pytest.raises(DataError, match=rf"{path}:17: the span 31-33 'Os' \(LOC\) ends within the token 'Oslo'"):
        read(path, SPANS)


def test_offsets_that_are_not_characters_are_seen(tmp_path: Path) -> None:
    for unit, encoding in (("utf-16", ("utf-16-le", 2)), ("utf-8", ("utf-8", 1))):
        path = label_studio(tmp_path, *encoding)
        with pytest.raises(ElmoTasksError) as caught:
            read(path, SPANS | {"on_error": "skip", "tokenizer": "unicode"})
        start, end = (3, 16) if unit == "utf-16" else (5, 18)
        problem = f"the span {start}-{end} is 'Mira  Dolvane' in {unit}, not in characters; set offsets: '{unit}'"
        assert str(caught.value) == f"{path}:2: record 1: {problem}"
        assert found_spans(read(path, SPANS | {"offsets": unit, "tokenizer": "unicode"})) == EXPECTED


def test_a_span_of_prodigy_that_ends_within_a_token_is_widened(tmp_path: Path) -> None:
    tokens = [{"text": "Mira", "start": 0, "end": 4}, {"text": "Dolvane", "start": 5, "end": 12}]
    row = {"text": "Mira Dolvane", "tokens": tokens, "spans": [{"start": 0, "end": 7, "label": "PER"}]}
    examples = read(lines(tmp_path / "a.jsonl", [row]), SPANS | {"on_error": "widen"})
    assert found_spans(examples) == [("MiraDolvane", "PER")]


def test_other_keys(tmp_path: Path) -> None:
    row = {"title": "x", "body": "Mira left.", "label": ["no"], "names": [[0, 4, "PER"]]}
    path = lines(tmp_path / "a.jsonl", [row])
    assert found_spans(read(path, SPANS | {"columns": {"text": "body", "label": "names"}})) == [("Mira", "PER")]
    value = {"start": 0, "end": 4, "text": "Mira", "labels": ["PER"]}
    results = [{"from_name": name, "value": value | {"labels": [name]}} for name in ("kinds", "names")]
    task = {"data": {"body": "Mira left."}, "annotations": [{"result": results}]}
    path = document(tmp_path / "a.json", [task])
    assert found_spans(read(path, SPANS | {"columns": {"label": "names"}})) == [("Mira", "names")]


def test_offsets_that_may_not_be_characters(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"text": "😀 Mira left.", "label": [[3, 7, "PER"]]}])
    with pytest.raises(DataError) as caught:
        read(path, SPANS)
    problem = "the span 3-7 'ira ' (PER) begins within the token 'Mira'"
    units = "or the tool counts UTF-16 units: set offsets: 'utf-16'"
    assert str(caught.value) == f"{path}:1: {problem}; {REMEDY}; {units}"


def test_pairs_on_lines(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [["Mira left.", {"entities": [[0, 4, "PER"]]}]] * 2)
    examples = read(path, SPANS)
    assert [(each["line"], *found_spans([each])) for each in examples] == [(1, ("Mira", "PER")), (2, ("Mira", "PER"))]


def test_grapheme_clusters(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"text": "👩‍👧 Mira left.", "label": [[2, 6, "PER"]]}])
    assert found_spans(read(path, SPANS | {"offsets": "graphemes", "tokenizer": "unicode"})) == [("Mira", "PER")]


def test_sentences_that_a_span_crosses_are_joined(tmp_path: Path) -> None:
    text = "It rained. Mira slept. Tavo left. So it was."
    path = lines(tmp_path / "a.jsonl", [{"text": text, "label": [[11, 32, "EVENT"]]}])
    examples = read(path, SPANS)
    assert [len(each["tokens"]) for each in examples] == [3, 6, 4]
    assert found_spans(examples) == [("Miraslept.Tavoleft", "EVENT")]


def test_what_is_left_out_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for export in EXPORTS:
        read(export(tmp_path), SPANS | {"tokenizer": {"type": "regex", "pattern": "\\w+|\\S"}})  # is not cached
    for count, what in (
        (1, "relation(s)"),  # Label Studio
        (3, "relation(s)"),  # doccano
        (4, "cancelled annotation(s)"),
        (4, "annotation(s) of other annotators"),
        (1, "annotation(s) of other annotators"),
        (1, "text(s) with the answer 'reject'"),
        (1, "text(s) with the answer 'ignore'"),
        (4, "event(s)"),
        (4, "attribute(s)"),
        (4, "note(s)"),
    ):
        assert f": {count} {what} left out" in caplog.text, what


@pytest.mark.parametrize(
    ("rows", "tokens"),
    [
        ([{"id": 1, "text": "Warm.", "label": ["good"]}, {"id": 2, "text": "Cold.", "label": ["bad"]}], 2),
        ([{"data": {"text": text}, "annotations": [{"result": [{"type": "choices", "value": {"choices": [label]}}]}]}
          for text, label in (("Warm.", "good"), ("Cold.", "bad"))], 2),
        ([{"text": "Warm.", "annotation_id": 1, "label": "good"}, {"text": "Cold.", "annotation_id": 2,
          "label": {"choices": ["bad"]}}], 2),
        ([{"text": "Warm.", "accept": ["good"], "answer": "accept"}, {"text": "Cold.", "accept": ["bad"],
          "answer": "accept"}], 2),
        ([["Warm.", {"cats": {"good": 1.0, "bad": 0.0}}], ["Cold.", {"cats": {"bad": 1.0}}]], 2),
    ],
    ids=["doccano", "Label Studio", "JSON-MIN", "Prodigy", "spaCy"],
)  # fmt: skip
def test_labels_of_whole_texts(rows: list[Any], tokens: int, tmp_path: Path) -> None:
    path = document(tmp_path / "a.json", rows)
    examples = read(path, SPANS | {"task": "classification"})
    assert [(each["tokens"], each["label"]) for each in examples] == [(["Warm", "."], "good"), (["Cold", "."], "bad")]
    examples = read(path, SPANS | {"task": "multi_label"})
    assert [each["labels"] for each in examples] == [["good"], ["bad"]]


def test_annotations_of_the_other_kind_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rows = [
        {"text": "Mira left.", "label": [[0, 4, "PER"], "good", "short", "calm"]},
        {"text": "Ow.", "label": ["bad"]},
    ]
    path = lines(tmp_path / "a.jsonl", rows)
    assert found_spans(read(path, SPANS)) == [("Mira", "PER")]
    assert "4 label(s) of whole texts left out" in caplog.text
    assert len(read(path, SPANS | {"task": "multi_label"})) == 2
    assert "1 span(s) left out" in caplog.text


def test_texts_without_a_label_or_with_several(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    path = lines(tmp_path / "a.jsonl", [{"text": "Warm.", "label": ["good"]}, {"text": "Cold.", "label": []}])
    assert len(read(path, SPANS | {"task": "classification"})) == 1
    assert f"{path}: 1 row(s) without a gold label left out" in caplog.text
    lines(path, [{"text": "Warm.", "label": ["good", "short"]}])
    with pytest.raises(DataError, match=r"a\.jsonl:1: the label is \['good', 'short'\]; expected a string"):
        read(path, SPANS | {"task": "classification"})


WRONG: list[tuple[str, str]] = [
    ('{"a": 1}\n', ":1: the keys are a; expected those of doccano, Label Studio, Prodigy, spaCy or GLiNER, or the key "
     "of the text in 'columns'"),
    ('{"text": 5, "label": []}\n', ":1: ValueError: 'text' is not a text; name its key in 'columns'; expected an "
     "export of doccano"),
    ('{"text": "a", "label": [["b", 1, "X"]]}\n', ":1: ValueError: a span is ('b', 1, 'X'), not a start, an end and a "
     "label; expected an export of doccano"),
    ('{"data": {"text": "a"}, "annotations": [5]}\n', ":1: AttributeError: 'int' object has no attribute 'get'; "
     "expected an export of Label Studio"),
    ('[["a"]]', ":1: record 1: IndexError: list index out of range; expected an export of spaCy"),
    ('[["a", {}]', ":1: Expecting ',' delimiter at column 11; expected a JSON array of texts, or an object on each "
     "line"),
    ("#FORMAT=WebAnno TSV 3.2\n#T_SP=a.Name|value\n1-1\t0-1\n", ": IndexError: list index out of range; "
     "expected an export of INCEpTION or WebAnno"),
    ("Mira left.\n", ": has no example; 1 text(s) without an annotation left out"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "problem"), WRONG, ids=[content[:30] for content, _ in WRONG])
def test_what_is_not_an_export(content: str, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", content)
    with pytest.raises(DataError) as caught:
        read(path, SPANS)
    assert str(caught.value) == f"{path}{problem}"


def test_texts_to_predict_need_no_annotations(tmp_path: Path) -> None:
    path = label_studio(tmp_path)
    expected = [each["tokens"] for each in read(path, SPANS)]
    tasks = [
        {key: value for key, value in task.items() if key != "annotations"} for task in json.loads(path.read_text())
    ]
    document(path, tasks)
    assert [each["tokens"] for each in build(SPANS).unlabelled(str(path))] == expected


def test_odd_files(data_folder: Path) -> None:
    folder = data_folder / "odd_files"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    examples = read(folder / "doccano.jsonl", SPANS)
    assert [each["document"] for each in examples] == [0, 0, 1, 2]
    assert [label for _, label in found_spans(examples)] == ["PER", "ORG", "LOC", "PER", "ORG"]
    (example,) = read(folder / "label_studio.json", SPANS)
    assert [label for _, label in found_spans([example])] == ["PER", "ORG"]
    path = folder / "spacy_tuples.json"
    with pytest.raises(DataError, match=rf"{path}:2: record 2: the span 3-7 .* \(PER\) begins within the token"):
        read(path, SPANS)
