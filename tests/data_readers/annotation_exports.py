"""The same annotated texts as each annotation tool exports them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

Spans = list[tuple[str, str]]
# Emoji, two blanks, a line break within a span and a text, combining letters, text from right to left.
TEXTS: list[tuple[str, Spans]] = [
    ("😀 Mira  Dolvane joined\nKarvel in Ma\u0301laga. It rained.", [
        ("Mira  Dolvane", "PER"), ("Karvel", "ORG"), ("Ma\u0301laga", "LOC")]),
    ("👩‍👧 left 🇫🇷 with Tavo\nLund at 9.", [("Tavo\nLund", "PER")]),
    ("\u05d3\u05e0\u05d4 \u05db\u05d4\u05df \u05d2\u05e8\u05d4 \u05d1\u05d7\u05d9\u05e4\u05d4.", [
        ("\u05d3\u05e0\u05d4 \u05db\u05d4\u05df", "PER"), ("\u05d1\u05d7\u05d9\u05e4\u05d4", "LOC")]),
    ("Nothing was said.", []),
]  # fmt: skip


def places(text: str, spans: Spans, encoding: str = "utf-32-le", width: int = 4) -> list[tuple[int, int, str, str]]:
    """Start, end, label and text of the spans, counted in units of an encoding."""
    found = []
    for part, label in spans:
        start = len(text[: text.index(part)].encode(encoding)) // width
        found.append((start, start + len(part.encode(encoding)) // width, label, part))
    return found


def doccano(folder: Path) -> Path:
    rows = [{"id": 7, "text": text, "label": [each[:3] for each in places(text, spans)]} for text, spans in TEXTS]
    return lines(folder / "all.jsonl", rows)


def doccano_relations(folder: Path) -> Path:
    keys = ("start_offset", "end_offset", "label")
    rows = [
        {
            "id": 7,
            "data": text,
            "entities": [{"id": 1, **dict(zip(keys, each[:3], strict=True))} for each in places(text, spans)],
            "relations": [{"id": 2, "from_id": 1, "to_id": 1, "type": "is"}] * bool(spans),
        }
        for text, spans in TEXTS
    ]
    return lines(folder / "relations.jsonl", rows)


def regions(text: str, spans: Spans, *encoding: Any) -> list[dict[str, Any]]:
    """The values of Label Studio's results."""
    return [
        {"start": start, "end": end, "text": part, "labels": [label]}
        for start, end, label, part in places(text, spans, *encoding)
    ]


def label_studio(folder: Path, *encoding: Any) -> Path:
    def results(text: str, spans: Spans) -> list[dict[str, Any]]:
        names = {"from_name": "names", "to_name": "text", "type": "labels"}
        return [{"id": "a", **names, "value": value} for value in regions(text, spans, *encoding)]

    tasks: list[dict[str, Any]] = [
        {
            "id": number,
            "data": {"text": text},
            "annotations": [
                {"id": 1, "was_cancelled": True, "result": []},
                {"id": 2, "was_cancelled": False, "result": results(text, spans)},
                {"id": 3, "was_cancelled": False, "result": []},
            ],
            "predictions": [],
        }
        for number, (text, spans) in enumerate(TEXTS)
    ]
    tasks[0]["annotations"][1]["result"].append({"type": "relation", "from_id": "a", "to_id": "a"})
    return document(folder / "project.json", tasks, indent=2)


def label_studio_min(folder: Path) -> Path:
    rows = [
        {"id": number, "text": text, "label": regions(text, spans), "annotator": 1, "annotation_id": number}
        for number, (text, spans) in enumerate(TEXTS)
    ]
    del rows[-1]["label"]  # there is none without a region
    return document(folder / "project-min.json", [*rows, {**rows[0], "annotation_id": 9, "label": []}])


def prodigy(folder: Path) -> Path:
    rows = [
        {
            "text": text,
            "tokens": [{"text": part, "start": start, "end": end} for start, end, _, part in places(text, spans)],
            "spans": [{"start": start, "end": end, "label": label} for start, end, label, _ in places(text, spans)],
            "answer": "accept",
            "_task_hash": 1,
        }
        for text, spans in TEXTS
    ]
    return lines(folder / "prodigy.jsonl", [*rows, {**rows[0], "answer": "reject"}, {**rows[0], "answer": "ignore"}])


def spacy_pairs(folder: Path) -> Path:
    pairs = [[text, {"entities": [each[:3] for each in places(text, spans)]}] for text, spans in TEXTS]
    return document(folder / "spacy.json", pairs)


def spacy_docbin(folder: Path) -> Path:
    import spacy

    nlp, documents = spacy.blank("xx"), DocBin()
    for text, spans in TEXTS:
        doc = nlp(text)
        ends = [doc.char_span(*each[:3], alignment_mode="expand") for each in places(text, spans)]
        doc.set_ents([span for span in ends if span])
        documents.add(doc)
    path = folder / "train.spacy"
    documents.to_disk(path)
    return path


def brat(folder: Path) -> Path:
    target = folder / "brat"
    target.mkdir()
    for number, (text, spans) in enumerate(TEXTS):
        notes = []
        for index, (start, end, label, part) in enumerate(places(text, spans), start=1):
            cut = part.find("\n")  # brat cuts spans there
            pieces = f"{start} {start + cut};{start + cut + 1} {end}" if cut > 0 else f"{start} {end}"
            notes.append(f"T{index}\t{label} {pieces}\t{part.replace(chr(10), ' ')}")
        notes += ["R1\tKnows Arg1:T1 Arg2:T2", "E1\tJoin:T1 Who:T2", "A1\tNegation E1", "#1\tAnnotatorNotes T1\tx", ""]
        (target / f"doc{number}.txt").write_bytes(text.encode())
        (target / f"doc{number}.ann").write_text("\n".join(notes), encoding="utf-8")
    return target


def read_docbin(path: Path) -> list[Doc]:
    """The documents of a `.spacy` file, as spaCy reads them."""
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def document(path: Path, value: Any, indent: int | None = None) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent), encoding="utf-8")
    return path


EXPORTS = [
    doccano, doccano_relations, label_studio, label_studio_min, prodigy, spacy_pairs, spacy_docbin, brat,
]  # fmt: skip
