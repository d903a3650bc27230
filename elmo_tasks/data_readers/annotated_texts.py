"""Texts with character spans and labels in JSON, as doccano, Label Studio, Prodigy, spaCy and GLiNER have them."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.data_readers.records import Record, json_records
from elmo_tasks.errors import DataError, one_line, one_line_of
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.text import read_lines

RELATIONS, UNFINISHED = "relation(s)", "text(s) without an annotation"  # what is left out
_OTHERS = "annotation(s) of other annotators"
_MIN = "Label Studio (JSON-MIN)"
_FLAT = ("label", "labels", "entities", "spans", "cats", "accept")  # the keys of annotations next to their text


class TextSpan(NamedTuple):
    """A labelled part of a text. `start` and `end`, which is exclusive, are as the tool counts them."""

    start: int
    end: int
    label: Any
    own_text: str | None = None  # as the tool has it
    fault: str = ""  # what is wrong with it whatever the text is
    location: str | None = None  # its line, if that is not the one of the text


class AnnotatedText(NamedTuple):
    """A text with its annotations; `number` is the line where it begins."""

    text: str
    spans: Sequence[TextSpan]
    labels: Sequence[Any]  # of the whole text
    missing: str = ""  # why there is no annotation
    sentences: Sequence[list[tuple[int, int]]] | None = None  # the tool's own tokens, as characters
    number: int = 1
    location: str = ""
    tool: str = ""
    record: Any = None  # what the tool's file has for it
    file: int = 0


def text_of_sentences(sentences: Sequence[Sequence[str]]) -> tuple[str, list[list[tuple[int, int]]]]:
    """Tokens as a text with spaces between them and a line for each sentence, and where each of them is."""
    ends = itertools.accumulate((len(token) + 1 for tokens in sentences for token in tokens), initial=0)
    places = ((start, end - 1) for start, end in itertools.pairwise(ends))
    return "\n".join(map(" ".join, sentences)), [[next(places) for _ in tokens] for tokens in sentences]


def json_texts(
    path: Path, columns: Mapping[str, str], bad_units: BadUnits, left_out: Counter[str]
) -> Iterator[AnnotatedText]:
    """The texts of JSON lines or of a JSON array. The keys of the first record say which tool has written it.

    Arguments:
        columns: the keys of `text` and `label` if they are not the usual ones.
        left_out: counts what is not read.
    """
    tool, seen = "", set[Any]()
    for record in _records(path, bad_units):
        with bad_units.caught():
            tool = tool or _recognized(record, columns)
            try:
                text = _TOOLS[tool](record, columns, left_out)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                problem = f"{one_line_of(record.columns)}; expected a text as {tool} exports it"
                raise DataError(record.location, f"{problem} ({one_line(error)})") from None
            key = record.columns.get("id") if tool == _MIN else None  # it has a record for each annotator
            if key is not None and key in seen:
                left_out[_OTHERS] += 1
                continue
            seen.add(key)
            yield text._replace(number=record.number, location=record.location, tool=tool, record=record.columns)


def _records(path: Path, bad_units: BadUnits) -> Iterator[Record]:
    """The objects of JSON lines, or the items of an array with the lines where they begin."""
    first = next((line.strip() for _, line in read_lines(path) if line.strip()), "")
    if first != "{" and not first.startswith("["):
        yield from json_records(read_lines(path), path, bad_units)
        return
    text = "\n".join(line for _, line in read_lines(path))
    value = parse_json(text, path, "a JSON array of texts, or an object on each line")
    end = text.index("[") + 1 if isinstance(value, list) else 0
    line = text.count("\n", 0, end) + 1
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        begin = re.compile(r"[\s,]*").match(text, end).end()  # type: ignore[union-attr]
        line += text.count("\n", end, begin)
        yield Record(item, line, f"{path}:{line}: record {number}")
        end = json.JSONDecoder().raw_decode(text, begin)[1]
        line += text.count("\n", begin, end)


def _recognized(first: Record, columns: Mapping[str, str]) -> str:
    keys = set(first.columns) if isinstance(first.columns, dict) else set()
    if isinstance(first.columns, list):
        return "spaCy"
    if "tokenized_text" in keys:
        return "GLiNER"
    if "data" in keys and isinstance(first.columns["data"], dict):
        return "Label Studio"
    if "annotation_id" in keys:
        return _MIN
    if keys & {"spans", "answer", "accept", "_task_hash"}:
        return "Prodigy"
    if keys & {"text", "data", columns.get("text")}:
        return "doccano"
    expected = "those of doccano, Label Studio, Prodigy, spaCy or GLiNER, or the key of the text in 'columns'"
    raise DataError(first.location, f"the keys are {', '.join(keys) or 'missing'}; expected {expected}")


def _flat(record: Record, columns: Mapping[str, str], left_out: Counter[str]) -> AnnotatedText:
    """Annotations next to their text: doccano, Prodigy, Label Studio's JSON-MIN."""
    row, text = record.columns, _string(record, columns)
    keys = dict.fromkeys(filter(None, (columns.get("label"), *_FLAT)))
    given = [row[key] for key in keys if row.get(key) is not None]
    values = [value for each in given for value in (each if isinstance(each, list) else [each])]
    spans, labels = _annotations([*values, *({"type": "relation"} for _ in row.get("relations") or ())], left_out)
    for number, (start, end, *_) in enumerate(spans):
        own = [each["text"] for each in row.get("tokens") or () if start <= each["start"] and each["end"] <= end]
        spans[number] = spans[number]._replace(own_text="".join(own) or spans[number].own_text)
    if (answer := row.get("answer", "accept")) != "accept":
        return AnnotatedText(text, spans, labels, f"text(s) with the answer {answer!r}")
    return AnnotatedText(text, spans, labels, "" if given or "annotation_id" in row else UNFINISHED)


def _label_studio(record: Record, columns: Mapping[str, str], left_out: Counter[str]) -> AnnotatedText:
    annotations = record.columns.get("annotations", record.columns.get("completions")) or ()
    finished = [each for each in annotations if not each.get("was_cancelled")]
    left_out["cancelled annotation(s)"] += len(annotations) - len(finished)
    left_out[_OTHERS] += len(finished[1:])
    results = [
        result.get("value", result)
        for result in (finished[0]["result"] if finished else ())
        if columns.get("label", result.get("from_name")) == result.get("from_name")
    ]
    text = _string(record._replace(columns=record.columns["data"]), columns)
    return AnnotatedText(text, *_annotations(results, left_out), "" if finished else UNFINISHED)


def _spacy(record: Record, columns: Mapping[str, str], left_out: Counter[str]) -> AnnotatedText:
    text, given = record.columns[:2]
    labels = [label for label, value in given.get("cats", {}).items() if value >= 0.5]
    return AnnotatedText(text, *_annotations([*given.get("entities", ()), *labels], left_out))


def _gliner(record: Record, columns: Mapping[str, str], left_out: Counter[str]) -> AnnotatedText:
    text, (places,) = text_of_sentences([record.get("tokenized_text", list)])
    spans, labels = _annotations(record.columns.get("ner") or (), left_out)
    for number, (start, end, *_) in enumerate(spans):
        if 0 <= start <= end < len(places):
            spans[number] = spans[number]._replace(start=places[start][0], end=places[end][1])
        else:
            spans[number] = spans[number]._replace(fault=f"is not within the {len(places)} tokens of its text")
    return AnnotatedText(text, spans, labels, "" if "ner" in record.columns else UNFINISHED, [places])


_TOOLS: dict[str, Callable[[Record, Mapping[str, str], Counter[str]], AnnotatedText]] = {
    "doccano": _flat,
    "Label Studio": _label_studio,
    _MIN: _flat,
    "Prodigy": _flat,
    "spaCy": _spacy,
    "GLiNER": _gliner,
}


def _string(record: Record, columns: Mapping[str, str]) -> str:
    """The text of a record: under the chosen key, a usual one, or the only string that there is."""
    strings = [key for key, value in record.columns.items() if isinstance(value, str)]
    usual = [key for key in ("text", "data") if key in record.columns] or strings[: len(strings) == 1] or ["text"]
    return record.get(columns.get("text", usual[0]), str)


def _annotations(values: Iterable[Any], left_out: Counter[str]) -> tuple[list[TextSpan], list[Any]]:
    """The spans among annotations, and the labels of the whole text."""
    spans, labels = list[TextSpan](), list[Any]()
    for value in values:
        if isinstance(value, list):
            spans.append(TextSpan(*value))
        elif not isinstance(value, dict):
            labels.append(value)
        elif "choices" in value and "start" not in value:
            labels += value["choices"]
        elif "label" in value or "labels" in value:
            start, end = (value.get(name, value.get(f"{name}_offset")) for name in ("start", "end"))
            spans += [
                TextSpan(start, end, each, value.get("text")) for each in value.get("labels", [value.get("label")])
            ]
        else:
            left_out[RELATIONS if value.get("type") == "relation" else "annotation(s) of other kinds"] += 1
    if wrong := [span for span in spans if not type(span.start) is type(span.end) is int]:
        raise ValueError(f"a span begins at {wrong[0].start!r} and ends at {wrong[0].end!r}")
    return spans, labels
