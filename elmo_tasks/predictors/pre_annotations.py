"""Predictions as annotation tools import them, to be corrected there by hand."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data_readers.annotation_tools import AnnotatedText, spacy_classes
from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.data_readers.spans import SpansReader, character_places
from elmo_tasks.errors import ElmoTasksError, OnError
from elmo_tasks.files.json_files import json_text
from elmo_tasks.predictors.predictor import Predictor
from elmo_tasks.tasks import Classification, MultiLabel, Task

_POSITION = "position of the text"  # the key of an input and of its results


class PreAnnotated(NamedTuple):
    """A text with what a model finds in it."""

    given: AnnotatedText
    spans: list[tuple[Any, ...]]  # start, end, label, text, probability
    labels: dict[str, float]  # of the whole text, with their probabilities
    borders: set[int]  # of tokens, in characters
    certainty: float  # the probability of the least certain tag or label


def check_task(tool: str, task: Task) -> None:
    """Raises an ElmoTasksError unless a tool has a place for the predictions of a task."""
    has_labels = isinstance(task, (Classification, MultiLabel)) and tool != "brat"
    if not has_labels and not getattr(task, "tag_scheme", None):
        expected = f"spans{'' if tool == 'brat' else ', or the labels of texts'}"
        problem = f"the model learned from {task.summary}; expected one that finds {expected}"
        raise ElmoTasksError(f"--output-format {tool}: {problem}")


def pre_annotate(
    predictor: Predictor, reader: SpansReader, source: str, on_error: OnError | None = None
) -> list[PreAnnotated]:
    """The texts of a tool's file, or the lines of a plain text, with what the model finds in them."""
    texts: list[AnnotatedText] = []
    results: dict[int, list[Mapping[str, Any]]] = defaultdict(list)

    def inputs() -> Iterator[dict[str, Any]]:
        reader.bad_units = BadUnits(on_error=on_error)
        for text in reader.texts(Path(source)):
            texts.append(text)
            yield {"text": text.text, _POSITION: len(texts) - 1}

    for result in predictor.predict(inputs(), source=source, on_error=on_error):
        results[result[_POSITION]].append(result)
    return [_found(text, results[number]) for number, text in enumerate(texts)]


def _found(text: AnnotatedText, results: Sequence[Mapping[str, Any]]) -> PreAnnotated:
    """A text with the results of its sentences, or with the only one."""
    found = PreAnnotated(text, [], {}, {0, len(text.text)}, 1.0)
    for result in results:
        for span in result.get("spans", ()):
            keys = ("start_char", "end_char", "label", "text", "probability")
            found.spans.append(tuple(span[key] for key in keys))
        found.borders.update(itertools.chain.from_iterable(result["offsets"]))
        chances = result["probabilities"]
        if isinstance(chances, dict):
            found.labels.update({label: chances[label] for label in result.get("labels", [result.get("label")])})
            is_set = "labels" in result
            chances = [max(each, 1 - each) for each in chances.values()] if is_set else found.labels.values()
        found = found._replace(certainty=min(found.certainty, *chances))
    return found


def doccano(found: PreAnnotated, reader: SpansReader, model: str) -> dict[str, Any]:
    """A line for doccano. In one of its own, only the annotations change."""
    own = found.given.record if found.given.tool == "doccano" else {"text": found.given.text}
    key = reader.config.columns.get("label", "label")
    row = {name: value for name, value in own.items() if name not in (key, "label", "labels", "relations")}
    if "entities" not in own:
        return {**row, key: [span[:3] for span in found.spans] or list(found.labels)}
    names = ("id", "start_offset", "end_offset", "label")
    entities = [dict(zip(names, (number, *span[:3]), strict=True)) for number, span in enumerate(found.spans)]
    return {**row, "entities": entities, "relations": []}


def label_studio(found: PreAnnotated, reader: SpansReader, model: str) -> dict[str, Any]:
    """A task with a prediction. In one of Label Studio's own, only the predictions change."""
    row = found.given.record if isinstance(found.given.record, dict) else {}
    data = {key: value for key, value in row.items() if not isinstance(value, (list, dict))}
    own = row if found.given.tool == "Label Studio" else {"data": {**data, "text": found.given.text}}
    given = [each for one in own.get("annotations") or () for each in one["result"] if "from_name" in each]
    names = {"from_name": reader.config.columns.get("label", "label"), "to_name": "text"}
    names = {name: given[0][name] for name in names} if given else names
    results: list[dict[str, Any]] = [
        {"value": {"start": start, "end": end, "text": text, "labels": [label]}, "type": "labels", "score": score}
        for start, end, label, text, score in found.spans
    ]
    if found.labels:
        results.append({"value": {"choices": list(found.labels)}, "type": "choices", "score": found.certainty})
    results = [{"id": str(number), **names, **each} for number, each in enumerate(results)]
    return {**own, "predictions": [{"model_version": model, "score": found.certainty, "result": results}]}


def spacy(found: PreAnnotated, reader: SpansReader, model: str) -> list[Any]:
    """A text and its annotations, as spaCy 2 has them."""
    own = found.given.record[1] if isinstance(found.given.record, list) else {}
    new = {"cats": found.labels} if found.labels else {"entities": [span[:3] for span in found.spans]}
    return [found.given.text, {**own, **new}]


def docbin(texts: Sequence[PreAnnotated], path: str) -> bytes:
    """The content of a `.spacy` file, with the tokens that the model has read."""
    make_doc, make_docbin, make_vocabulary = spacy_classes(path)
    documents, vocabulary = make_docbin(store_user_data=True), make_vocabulary()
    for found in texts:
        words, spaces = list[str](), list[bool]()
        for start, end in itertools.pairwise(sorted(found.borders)):
            word = found.given.text[start:end]
            if word == " " and words:
                spaces[-1] = True
            else:
                words, spaces = [*words, word], [*spaces, False]
        doc = make_doc(vocabulary, words, spaces, user_data=getattr(found.given.record, "user_data", None))
        doc.cats = found.labels
        doc.set_ents([doc.char_span(*span[:3]) for span in found.spans])
        documents.add(doc)
    return documents.to_bytes()


def brat_files(texts: Sequence[PreAnnotated]) -> dict[str, str]:
    """The texts and their annotations, by the names of files. The probabilities are notes; lines cut spans."""
    files: dict[str, str] = {}
    for position, found in enumerate(texts, start=1):
        own, lines = Path(found.given.record).stem if found.given.tool == "brat" else "", []
        name = f"{position:05}" if not own or f"{own}.txt" in files else own
        for number, (start, _, label, text, probability) in enumerate(found.spans, start=1):
            pieces = [f"{start + part.start()} {start + part.end()}" for part in re.finditer(r"[^\r\n]+", text)]
            lines.append(f"T{number}\t{label} {';'.join(pieces)}\t{' '.join(text.splitlines())}\n")
            lines.append(f"#{number}\tAnnotatorNotes T{number}\t{probability}\n")
        files |= {f"{name}.txt": found.given.text, f"{name}.ann": "".join(lines)}
    return files


def json_content(tool: str, texts: Sequence[PreAnnotated], reader: SpansReader, model: str) -> str:
    """The texts for doccano as JSON lines, for Label Studio or spaCy as a JSON array."""
    write: Callable[..., Any] = {"doccano": doccano, "label-studio": label_studio, "spacy": spacy}[tool]
    rows = []
    for found in texts:
        unit = "characters" if tool == "spacy" else reader.config.offsets
        offsets = {place: offset for offset, place in character_places(found.given.text, unit).items()}
        spans = [(offsets[start], offsets[end], *rest) for start, end, *rest in found.spans]
        rows.append(json_text(write(found._replace(spans=spans), reader, model)))
    return "".join(f"{row}\n" for row in rows) if tool == "doccano" else f"[{','.join(rows)}]\n"
