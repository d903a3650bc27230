"""Predictions as annotation tools import them, to be corrected there by hand."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import ElmoTasksError, OnError
from elmo_tasks.extras.annotation.annotation_tools import AnnotatedText, import_spacy
from elmo_tasks.extras.annotation.spans import SpansReader, character_places
from elmo_tasks.files.json_files import json_text
from elmo_tasks.files.paths import portable_name
from elmo_tasks.predictors.predictor import Predictor, chances
from elmo_tasks.tasks import Classification, MultiLabel

_AROUND_WORD = re.compile(r"^\s+|\S(?:.*\S)?|\s+$", re.DOTALL)  # white space at the ends of what is between tokens
# The keys of Prodigy for what somebody has decided, which says nothing about new predictions.
_DECISION = ("answer", "_view_id", "_annotator_id", "_session_id", "_timestamp")
_POSITION = "position of the text"  # the key of an input and of its results


@dataclasses.dataclass(frozen=True)
class PreAnnotated:
    """A text with what a model finds in it."""

    given: AnnotatedText
    control: Mapping[str, str]  # the names in results of Label Studio
    spans: list[tuple[Any, ...]] = dataclasses.field(default_factory=list)  # start, end, label, text, probability
    labels: dict[str, float] = dataclasses.field(default_factory=dict)  # of the whole text, with their probabilities
    borders: set[int] = dataclasses.field(default_factory=set)  # of tokens, in characters
    chances: list[float] = dataclasses.field(default_factory=lambda: [1.0])  # that tags and labels are right


def pre_annotate(
    tool: str, predictor: Predictor, reader: SpansReader, source: str, on_error: OnError | None = None
) -> list[PreAnnotated]:
    """The texts of a tool's file, or the lines of a plain text, with what the model finds in them.

    Raises:
        ElmoTasksError: the tool that gets them has no place for what the model finds, or for regions of pages; or the
            tasks have several controls of Label Studio, and the reader's `columns` name none.
    """
    task = predictor.task
    if not getattr(task, "tag_scheme", None) and (tool == "brat" or not isinstance(task, (Classification, MultiLabel))):
        expected = f"spans{'' if tool == 'brat' else ', or the labels of texts'}"
        problem = f"the model learned from {task.summary}; expected one that finds {expected}"
        raise ElmoTasksError(f"--output-format {tool}: {problem}")

    given = list(reader.texts(Path(source), Parsing(on_error=on_error, needs_labels=False)))
    if tool == "label-studio" and (pages := [text for text in given if text.is_html]):
        raise ElmoTasksError(f"{pages[0].location}: regions of pages (HTML) cannot be written for Label Studio")
    kind = "choices" if isinstance(task, (Classification, MultiLabel)) else "labels"
    control = _control(kind, given, reader.config.columns) if tool == "label-studio" else {}
    texts = [PreAnnotated(text, control) for text in given]
    inputs = ({"text": found.given.text, _POSITION: number} for number, found in enumerate(texts))
    for result in predictor.predict(inputs, source=source, on_error=on_error):  # of a text, or of its sentences
        found = texts[result[_POSITION]]
        for span in result.get("spans", ()):
            found.spans.append(tuple(span[key] for key in ("start_char", "end_char", "label", "text", "probability")))
        found.borders.update(itertools.chain(*result["offsets"]))
        if isinstance(shares := result["probabilities"], dict):
            chosen = result.get("labels", [result["label"]] if result.get("label") else [])
            found.labels.update({label: shares[label] for label in chosen})
        found.chances.extend(chances(result))
    return texts


def json_content(tool: str, texts: Sequence[PreAnnotated], reader: SpansReader, model: str) -> bytes:
    """The texts as JSON lines for doccano, or as tasks with predictions for Label Studio; ids and other keys stay."""
    rows, columns = list[str](), {"text": "text", "label": "label", **reader.config.columns}
    for found in texts:
        task = _task(found.given)
        decided = _DECISION if task["data"].get("answer") in ("accept", "reject", "ignore") else ()
        kept = {key: value for key, value in task["data"].items() if key not in decided}
        row = {**kept, columns["text"]: found.given.text}
        places = character_places(found.given.text, reader.config.offsets)
        offsets = dict(zip(places.values(), places, strict=True))
        spans = [(offsets[start], offsets[end], *rest) for start, end, *rest in found.spans]
        if tool == "doccano":
            row[columns["label"]] = [span[:3] for span in spans] or list(found.labels)
        else:
            values: list[tuple[dict[str, Any], float]] = [
                ({"start": start, "end": end, "text": text, "labels": [label]}, score)
                for start, end, label, text, score in spans
            ]
            values += [({"choices": list(found.labels)}, min(found.chances))] if found.labels else []
            results = [
                {"id": str(number), **found.control, "type": [*value][-1], "value": value, "score": score}
                for number, (value, score) in enumerate(values)
            ]
            prediction = {"model_version": model, "score": min(found.chances), "result": results}
            row = {**task, "data": row, "predictions": [*task.get("predictions", ()), prediction]}
        rows.append(json_text(row))
    return ("".join(f"{row}\n" for row in rows) if tool == "doccano" else f"[{','.join(rows)}]\n").encode()


def _task(text: AnnotatedText) -> Mapping[str, Any]:
    """The keys of a text as of a task of Label Studio, which has the data under one of them."""
    is_task = text.tool == "Label Studio" and isinstance(text.fields.get("data"), dict)
    return text.fields if is_task else {"data": text.fields}


def _control(kind: str, texts: Sequence[AnnotatedText], columns: Mapping[Any, str]) -> dict[str, str]:
    """The names of Label Studio's control for labels or choices, and of the text, in the tasks' own results."""
    given = [each for text in texts for key in ("annotations", "predictions") for each in _task(text).get(key) or ()]
    results = [result for each in given if isinstance(each, dict) for result in each.get("result", ())]
    known = {each["from_name"]: each["to_name"] for each in results if each.get("type") == kind and "to_name" in each}
    if len(known) > 1 and columns.get("label") not in known:
        names = " and ".join(map(repr, known))
        raise ElmoTasksError(f"the tasks have the controls {names}; set dataset_reader.columns.label to one of them")
    name = columns.get("label") or next(iter(known), "label")
    return {"from_name": name, "to_name": known.get(name, "text")}


def docbin(texts: Sequence[PreAnnotated]) -> bytes:
    """The content of a `.spacy` file, with the tokens that the model has read."""
    spacy = import_spacy()
    documents, vocabulary = spacy.tokens.DocBin(), spacy.vocab.Vocab()
    for found in texts:
        text = found.given.text
        pieces = [text[start:end] for start, end in itertools.pairwise(sorted({0, len(text), *found.borders}))]
        words = [word for piece in pieces for word in _AROUND_WORD.findall(piece)]
        doc = spacy.tokens.Doc(vocabulary, *spacy.util.get_words_and_spaces(words, text))
        doc.cats = found.labels
        doc.set_ents([doc.char_span(*span[:3]) for span in found.spans])
        documents.add(doc)
    return documents.to_bytes()


def brat_files(texts: Sequence[PreAnnotated]) -> dict[str, bytes]:
    """The texts and their annotations, by the names of files. Probabilities are notes; lines cut spans."""
    files = dict[str, bytes]()
    for position, found in enumerate(texts, start=1):
        file = str(_task(found.given)["data"].get("file", ""))
        own, notes = portable_name(re.split(r"[/\\]", file)[-1]), ""
        name = own if own and f"{own}.txt" not in files else f"{position:05}"
        for number, (start, _, label, text, probability) in enumerate(found.spans, start=1):
            pieces = [f"{start + part.start()} {start + part.end()}" for part in re.finditer(r"[^\r\n]+", text)]
            notes += f"T{number}\t{label.replace(' ', '_')} {';'.join(pieces)}\t{' '.join(text.splitlines())}\n"
            notes += f"#{number}\tAnnotatorNotes T{number}\t{probability}\n"
        files |= {f"{name}.txt": found.given.text.encode(), f"{name}.ann": notes.encode()}
    return files
