"""Exports with several annotations of a text, with answers about a part of it, and with what cannot be learned from."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import DocBin

from elmo_tasks.data_readers import Parsing
from elmo_tasks.extras.annotation.spans import SpansConfig
from tests.data_readers.readers import Settings, problem, read
from tests.extras.annotation.annotation_exports import annotation, document, lines, task
from tests.extras.annotation.test_spans import SPANS, TSV, found_spans

DANA = "Dana moved to Lyon."
PER, ORG = ("a", "PER"), ("b", "ORG")  # what two annotators say of Dana


def region(label: str, **more: Any) -> dict[str, Any]:
    """A region of Label Studio."""
    return {"start": 0, "end": 4, "text": "Dana", "labels": [label], **more}


def span(label: str, **more: Any) -> dict[str, Any]:
    """A span of Prodigy."""
    return {"start": 0, "end": 4, "label": label, **more}


def tsv(label: str) -> str:
    """The text as INCEpTION has it."""
    return f"{TSV}1-1\t0-4\tDana\t*\t{label}\t_\t_\n1-2\t5-10\tmoved\t_\t_\t_\t_\n"


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            (folder / name).write_text(content)
        else:
            lines(folder / name, content)
    return folder


def left_out(path: Path, settings: Settings) -> dict[str, int]:
    """What is left out and counted, without the first places."""
    parsing = Parsing()
    list(SpansConfig.model_validate(settings).build().examples(path, parsing))
    return {what.partition(" (first: ")[0]: number for what, number in parsing.left_out.items()}


# Files of the annotators `a` and `b`
SEVERAL: dict[str, Any] = {
    "doccano": lambda *both: {f"{who}.jsonl": [{"id": 1, "text": DANA, "label": [[0, 4, says]]}] for who, says in both},
    "doccano of old": lambda *both: {"x.json": [{"text": DANA, "annotations": [
        {"start_offset": 0, "end_offset": 4, "label": says, "user": who} for who, says in both]}]},
    "Label Studio": lambda *both: {"x.json": [
        task(DANA, *(annotation([region(says)], completed_by={"id": 1, "email": who}) for who, says in both))]},
    "JSON-MIN": lambda *both: {"x.json": [
        {"id": 1, "text": DANA, "label": [region(says)], "annotator": who, "annotation_id": 1} for who, says in both]},
    "Prodigy": lambda *both: {"x.json": [
        {"text": DANA, "spans": [span(says)], "answer": "accept", "_annotator_id": who} for who, says in both]},
    "INCEpTION": lambda *both: {f"annotation/x.txt/{who}.tsv": tsv(says) for who, says in both},
}  # fmt: skip


@pytest.mark.parametrize("tool", SEVERAL)
def test_several_annotators(tool: str, tmp_path: Path) -> None:
    path = write(tmp_path / "export", SEVERAL[tool](PER, ORG))
    assert "the text has other annotations at" in problem(path, SPANS)
    assert problem(path, SPANS).endswith("; set annotator to one of 'a', 'b'")
    for who, says in (PER, ORG):
        assert found_spans(read(path, SPANS | {"annotator": who})) == [("Dana", says)]
        other = "b" if who == "a" else "a"
        assert left_out(path, {"annotator": who})[f"annotation(s) of annotator {other}"] == 1
    assert "has no example" in problem(path, SPANS | {"annotator": "c"})
    to_predict = list(SpansConfig().build().unlabelled(str(path)))
    assert len(to_predict) == 1
    write(tmp_path / "agreed.zip", SEVERAL[tool](PER, ("b", "PER")))
    for name in ("agreed.zip", "agreed*"):  # a folder
        assert found_spans(read(tmp_path / name, SPANS)) == [("Dana", "PER")]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([{}, {}], 2),  # of Anna and of Ben, who both have the text twice
        ([{"_input_hash": 1}, {"_input_hash": 2}], 2),
        ([{"_input_hash": 1}, {"_input_hash": 1}], 1),  # two questions about a text
        ([{"id": 1}, {"id": 2}, {"id": 1, "text": "Orla left."}], 3),
    ],
)
def test_texts_to_predict_come_once_each(ids: list[dict[str, Any]], expected: int, tmp_path: Path) -> None:
    rows = [{"text": DANA, "answer": "accept", "_annotator_id": who, **own} for who in "ab" for own in ids]
    assert len(list(SpansConfig().build().unlabelled(str(lines(tmp_path / "a.jsonl", rows))))) == expected


def test_files_of_annotators_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, content in SEVERAL["doccano"](PER, ORG).items():
            archive.write(lines(tmp_path / name, content), name)
    for who, says in (PER, ORG):
        assert found_spans(read(tmp_path / "a.zip", SPANS | {"annotator": who})) == [("Dana", says)]
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "1e-9")
    assert problem(tmp_path / "a.zip", SPANS).startswith(": the archive is far larger inside; ")
    monkeypatch.delenv("ELMO_TASKS_LIMITS")
    (tmp_path / "b.zip").write_bytes((tmp_path / "a.zip").read_bytes()[:-30])
    assert problem(tmp_path / "b.zip", SPANS).startswith(": the archive is damaged or cut short (")


def test_a_project_of_inception(tmp_path: Path) -> None:
    """A curated text is the right one; other texts, with the same words, are texts of their own."""
    files = {f"annotation/{text}.txt/{who}.tsv": tsv(says) for text in ("x", "y") for who, says in (PER, ("b", "PER"))}
    more = {
        "annotation/x.txt/INITIAL_CAS.tsv": TSV,
        "curation/x.txt/CURATION_USER.tsv": tsv("LOC"),
        "source/x.txt": DANA,
    }
    path = write(tmp_path, files | more)
    assert found_spans(read(path, SPANS)) == [("Dana", "LOC"), ("Dana", "PER")]
    assert [text.fields["file"] for text in SpansConfig().build().texts(path, Parsing())] == ["x", "x", "y", "y", "x"]


ACCEPTED = {"text": DANA, "answer": "accept", "_view_id": "ner"}
TOPIC = {"text": DANA, "label": "travel", "answer": "accept", "_view_id": "classification"}
FULL = {"text": "Nothing.", "spans": [], "answer": "accept", "accept": ["none"]}
# Answers of Prodigy, and what is read for a task: texts with their spans or labels
ANSWERS: list[tuple[list[dict[str, Any]], str, list[Any]]] = [
    ([ACCEPTED | {"spans": [span("PER")]}], "tagging", []),
    ([ACCEPTED | {"spans": [span("PER", answer="accept")]}], "tagging", [("Dana", "PER")]),
    ([ACCEPTED | {"spans": [span("PER", answer="ignore"), span("ORG", answer="accept")]}], "tagging",
     [("Dana", "ORG")]),
    ([{"text": DANA, "spans": [span("PER")]}, {"text": DANA, "spans": [{"start": 14, "end": 18, "label": "LOC"}]}],
     "tagging", []),
    ([{"text": DANA, "spans": [span("PER")]}, {"text": DANA, "spans": [span("ORG")], "answer": "reject"}],
     "tagging", []),
    ([{"text": DANA, "spans": [span("PER")]}] * 2, "tagging", [("Dana", "PER")]),
    ([TOPIC, TOPIC | {"label": "work", "answer": "reject"}], "classification", ["travel"]),
    ([TOPIC], "multi_label", []),
    ([TOPIC], "tagging", []),
    ([{"text": DANA, "label": label, "answer": "accept"} for label in ("travel", "work")], "multi_label", []),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_answers_about_a_part_of_a_text_are_left_out(number: int, tmp_path: Path) -> None:
    rows, task_name, expected = ANSWERS[number]
    examples = read(lines(tmp_path / "a.jsonl", [*rows, FULL]), SPANS | {"task": task_name})
    if task_name == "tagging":
        assert found_spans(examples) == expected
    else:
        assert [each.get("label", each.get("labels")) for each in examples] == [
            *expected, "none" if task_name == "classification" else ["none"]]  # fmt: skip
    assert len(examples) == 1 + len(expected)
    assert sum(left_out(tmp_path / "a.jsonl", {"task": task_name}).values()) >= len(rows) - len(expected)


def test_texts_of_spacy_with_only_labels_or_open_tokens(tmp_path: Path) -> None:
    rows: list[Any] = [[DANA, {"cats": {"travel": 1, "work": 0}}], ["Tavo left.", {"entities": [[0, 4, "PER"]]}]]
    for path in (document(tmp_path / "a.json", rows), lines(tmp_path / "a.jsonl", [{"text": a, **b} for a, b in rows])):
        assert found_spans(read(path, SPANS)) == [("Tavo", "PER")]
        assert left_out(path, {}) == {"text(s) with labels only, for another 'task',": 1}
        for name in ("classification", "multi_label"):
            assert [each["tokens"][0] for each in read(path, SPANS | {"task": name})] == ["Dana"]
    nlp, documents = spacy.blank("en"), DocBin()
    for is_open in (False, True):
        doc = nlp(DANA)
        doc.set_ents([doc.char_span(0, 4, label="PER")], default="missing" if is_open else "outside")
        doc.spans["sc"] = [doc.char_span(14, 18, label="LOC")]
        documents.add(doc)
    doc = nlp("Cold.")
    doc.cats = {"weather": 1.0}
    documents.add(doc)
    documents.to_disk(tmp_path / "a.spacy")
    assert found_spans(read(tmp_path / "a.spacy", SPANS)) == [("Dana", "PER")]
    counts = left_out(tmp_path / "a.spacy", {})
    assert (counts.pop("span(s) of groups"), sum(counts.values())) == (2, 2)


def result(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """A result of Label Studio."""
    return {"id": "a", "from_name": kind, "to_name": "text", "type": kind, "value": value}


def test_what_label_studio_has_next_to_spans(tmp_path: Path) -> None:
    place = {"start": 0, "end": 4, "text": "Dana"}
    others = [
        result("labels", place),
        result("labels", {**place, "labels": []}),
        result("textarea", {**place, "text": ["a remark"]}),
        result("textarea", {"text": ["a remark"]}),
        result("choices", {**place, "choices": ["sure"]}),
        result("taxonomy", {"taxonomy": [["a", "b"]]}),
    ]
    found = {"result": [result("labels", region("PER")), *others]}
    path = document(tmp_path / "a.json", [task(DANA, found)])
    assert found_spans(read(path, SPANS)) == [("Dana", "PER")]
    assert left_out(path, {}) == {"annotation(s) of other kinds, or without a label": len(others)}
    found["result"].append(result("choices", {"choices": ["travel"]}))
    assert read(document(path, [task(DANA, found)]), SPANS | {"task": "multi_label"})[0]["labels"] == ["travel"]


def test_two_controls_or_texts_of_label_studio_are_never_one(tmp_path: Path) -> None:
    ner, pos = result("labels", region("PER")), {**result("labels", region("PROPN")), "from_name": "pos"}
    path = document(tmp_path / "a.json", [task(DANA, {"result": [ner]}), task(DANA, {"result": [pos]})])
    assert "the controls 'labels' and 'pos'; set dataset_reader.columns.label to one" in problem(path, SPANS)
    assert found_spans(read(path, SPANS | {"columns": {"label": "labels"}})) == [("Dana", "PER")]
    assert len(list(SpansConfig().build().examples(path, Parsing(needs_labels=False)))) > 0

    ner["to_name"] = "title"
    document(path, [{**task(DANA, {"result": [ner]}), "data": {"text": "Paul left.", "title": DANA}}])
    assert "of 'title', and 'text' is read; set dataset_reader.columns.text to 'title'" in problem(path, SPANS)
    assert found_spans(read(path, SPANS | {"columns": {"text": "title"}})) == [("Dana", "PER")]

    document(path, [{"annotation_id": 1, "text": DANA, "ner": [region("PER")]}])  # JSON-MIN
    assert "named label (other names of controls: dataset_reader.columns.label)" in problem(path, SPANS)


def test_a_table_of_label_studio(tmp_path: Path) -> None:
    found = json.dumps([region("PER")]).replace('"', '""')
    for ending, mark in (("csv", ","), ("tsv", "\t")):
        path = tmp_path / f"a.{ending}"
        rows = [
            ["annotation_id", "id", "label", "text"],
            ["7", "007", f'"{found}"', DANA],
            ["8", "8", "", '"Not\nyet."'],
        ]
        path.write_text("\ufeff" + "".join(mark.join(row) + "\n" for row in rows), encoding="utf-8")
        assert found_spans(read(path, SPANS)) == [("Dana", "PER")]
        (given, other) = SpansConfig().build().texts(path, Parsing())
        assert (given.fields, other.text) == ({"annotation_id": "7", "id": "007"}, "Not\nyet.")
        for cells in ("7", f"7{mark}8{mark}{mark}One{mark}Two"):
            path.write_text(f"annotation_id{mark}id{mark}label{mark}text\n{cells}\n")
            assert problem(path, SPANS) == ": record 1: has more or fewer cells than the header row"
        path.write_bytes(b"text\n\xff\n")
        assert "UTF-8" in problem(path, SPANS)


def test_pages_of_label_studio(tmp_path: Path) -> None:
    """Regions of HTML count its characters without tags, and the text has a border where a block ends."""

    def page(text: str, *places: Any) -> dict[str, Any]:
        values = [
            {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "startOffset": 0, "endOffset": 4, "text": part,
             "hypertextlabels": [label], **({"globalOffsets": {"start": start, "end": end}} if end else {})}
            for start, end, part, label in places
        ]  # fmt: skip
        return task(text, {"result": [result("hypertextlabels", value) for value in values]})

    text = "<h1>Dana moved</h1><p>to <b>Ly</b>on &amp; 😀 Oslo.</p>"
    places = [(0, 4, "Dana", "PER"), (13, 17, "Lyon", "LOC"), (23, 27, "Oslo", "LOC")]
    path = document(tmp_path / "a.json", [page(text, *places), page("<p>Nothing.</p>")])
    settings = SPANS | {"offsets": "utf-16"}
    examples = read(path, settings)
    assert found_spans(examples) == [("Dana", "PER"), ("Lyon", "LOC"), ("Oslo", "LOC")]
    assert [token for each in examples for token in each["tokens"]] == [
        "Dana", "moved", "to", "Lyon", "&", "😀", "Oslo", ".", "Nothing", "."]  # fmt: skip
    document(path, [page(text, (0, 0, "Dana", "PER"))])
    assert "the annotation is {'start': '/p[1]/text()[1]'" in problem(path, settings)
