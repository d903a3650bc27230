"""The same annotated texts as each annotation tool exports them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import DocBin

from elmo_tasks.extras.raw_text.tokenizers import UnicodeTokenizer

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


def places(text: str, spans: Spans, encoding: str = "utf-32-le", width: int = 4) -> list[list[Any]]:
    """Start, end and label of the spans, counted in units of an encoding."""
    found: list[list[Any]] = []
    for part, label in spans:
        start = len(text[: text.index(part)].encode(encoding)) // width
        found.append([start, start + len(part.encode(encoding)) // width, label])
    return found


def doccano(folder: Path) -> Path:
    return lines(folder / "all.jsonl", [{"id": 7, "text": text, "label": places(text, each)} for text, each in TEXTS])


def doccano_relations(folder: Path) -> Path:
    relation, keys = {"id": 2, "from_id": 1, "to_id": 1, "type": "is"}, ("start_offset", "end_offset", "label")
    rows = []
    for text, spans in TEXTS:
        entities = [{"id": 1, **dict(zip(keys, each, strict=True))} for each in places(text, spans)]
        rows.append({"id": 7, "data": text, "entities": entities, "relations": [relation] * bool(spans)})
    return lines(folder / "relations.jsonl", rows)


def regions(text: str, spans: Spans, *encoding: Any) -> list[dict[str, Any]]:
    """The values of Label Studio's results."""
    found = zip(places(text, spans, *encoding), spans, strict=True)
    return [{"start": start, "end": end, "text": part, "labels": [label]} for (start, end, label), (part, _) in found]


def task(text: str, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A task of Label Studio."""
    return {"id": 7, "data": {"text": text}, "annotations": list(annotations), "predictions": [], **more}


def annotation(values: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """What an annotator of Label Studio has found."""
    names = {"from_name": "label", "to_name": "text", "type": "labels"}
    return {
        "id": 1,
        "was_cancelled": False,
        "result": [{"id": "a", **names, "value": value} for value in values],
        **more,
    }


def label_studio(folder: Path, *encoding: Any) -> Path:
    cancelled = annotation([], was_cancelled=True)
    tasks = [task(text, cancelled, *[annotation(regions(text, each, *encoding))] * 2) for text, each in TEXTS]
    tasks[0]["annotations"][1]["result"].append({"type": "relation", "from_id": "a", "to_id": "a"})
    return document(folder / "project.json", tasks, indent=2)


def prodigy(folder: Path) -> Path:
    keys = ("start", "end", "label")
    rows: list[dict[str, Any]] = [
        {
            "text": text,
            "spans": [dict(zip(keys, each, strict=True)) for each in places(text, spans)],
            "answer": "accept",
        }
        for text, spans in TEXTS
    ]
    return lines(folder / "prodigy.jsonl", [*rows, {**rows[0], "answer": "reject"}, {**rows[0], "answer": "ignore"}])


def spacy_pairs(folder: Path) -> Path:
    return document(folder / "spacy.json", [[text, {"entities": places(text, spans)}] for text, spans in TEXTS])


def spacy_docbin(folder: Path) -> Path:
    nlp, documents = spacy.blank("xx"), DocBin()
    for text, spans in TEXTS:
        doc = nlp(text)
        doc.set_ents([span for each in places(text, spans) if (span := doc.char_span(*each, alignment_mode="expand"))])
        documents.add(doc)
    documents.to_disk(folder / "train.spacy")
    return folder / "train.spacy"


def brat(folder: Path) -> Path:
    target = folder / "brat"
    target.mkdir()
    for number, (text, spans) in enumerate(TEXTS):
        notes = ["R1\tKnows Arg1:T1 Arg2:T2", "E1\tJoin:T1 Who:T2", "A1\tNegation E1", "#1\tAnnotatorNotes T1\tx", ""]
        for index, ((start, end, label), (part, _)) in enumerate(zip(places(text, spans), spans, strict=True)):
            cut = part.find("\n")  # brat cuts spans there
            pieces = f"{start} {start + cut};{start + cut + 1} {end}" if cut > 0 else f"{start} {end}"
            notes.insert(index, f"T{index}\t{label} {pieces}\t{part.replace(chr(10), ' ')}")
        (target / f"doc{number}.txt").write_bytes(text.encode())
        (target / f"doc{number}.ann").write_text("\n".join(notes), encoding="utf-8")
    return target


def tokens(text: str, spans: Spans) -> Iterator[list[tuple[int, int, str, int]]]:
    """The start, end and text of each token in each sentence, with the number of its span, from 1, or 0."""
    found = [(number, start, end) for number, (start, end, _) in enumerate(places(text, spans), 1)]
    for sentence in UnicodeTokenizer().spans(text):
        numbers = [next((at for at, first, last in found if first <= start < last), 0) for start, _ in sentence]
        yield [(start, end, text[start:end], at) for (start, end), at in zip(sentence, numbers, strict=True)]


def gliner(folder: Path) -> Path:
    rows = []
    for text, spans in TEXTS:
        words = [word for sentence in tokens(text, spans) for word in sentence]
        inside = [[at for at, word in enumerate(words) if word[3] == number] for number in range(1, len(spans) + 1)]
        found = [[each[0], each[-1], label] for each, (_, label) in zip(inside, spans, strict=True)]
        rows.append({"tokenized_text": [word[2] for word in words], "ner": found})
    return document(folder / "gliner.json", rows)


def webanno(folder: Path) -> Path:
    (target := folder / "webanno").mkdir()
    for document_number, (text, spans) in enumerate(TEXTS):
        content = "#FORMAT=WebAnno TSV 3.3\n#T_SP=a.b.POS|PosValue\n#T_SP=a.b.NamedEntity|identifier|value\n\n"
        for number, sentence in enumerate(tokens(text, spans), 1):
            content += f"\n#Text={' '.join(word[2] for word in sentence)}\n"
            for at, (start, end, word, span) in enumerate(sentence, 1):
                values = f"*[{span}]\t{spans[span - 1][1]}[{span}]" if span else "_\t_"
                content += f"{number}-{at}\t{start}-{end}\t{word}\tX\t{values}\t\n"
        (target / f"{document_number}.tsv").write_text(content, encoding="utf-8")
    return target


def lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def document(path: Path, value: Any, indent: int | None = None) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent), encoding="utf-8")
    return path


EXPORTS = [doccano, doccano_relations, label_studio, prodigy, spacy_pairs, spacy_docbin, brat, gliner, webanno]
