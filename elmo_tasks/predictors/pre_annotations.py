"""Predictions as annotation tools import them, to be corrected there by hand."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data_readers.annotation_tools import AnnotatedText
from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.data_readers.spans import SpansReader, character_places
from elmo_tasks.errors import OnError
from elmo_tasks.files.json_files import json_text

POSITION = "position of the text"  # the key of an input and of its results


class FoundSpan(NamedTuple):
    """A predicted span; `start` and `end` are as the tool counts them."""

    start: int
    end: int
    label: str
    text: str
    probability: float


class PreAnnotations:
    """The texts of a tool's file, or the lines of a plain text, with what a model finds in them.

    Arguments:
        model: the name of the model.
    """

    def __init__(self, reader: SpansReader, model: str) -> None:
        self._reader, self._model = reader, model
        self._texts: list[AnnotatedText] = []
        self._results: list[list[Mapping[str, Any]]] = []

    def inputs(self, source: str, on_error: OnError | None) -> Iterator[dict[str, Any]]:
        """The inputs of the predictor, in the order of the file."""
        self._reader.bad_units = BadUnits(on_error=on_error)
        for text in self._reader.texts(Path(source)):
            self._texts.append(text)
            self._results.append([])
            yield {"text": text.text, POSITION: len(self._texts) - 1}

    def add(self, result: Mapping[str, Any]) -> None:
        """Adds the result of a sentence or text."""
        self._results[result[POSITION]].append(result)

    def end_early(self) -> None:
        """Leaves out the last text with a result, which may not have all of them, and those after it."""
        last = max(number for number, results in enumerate(self._results) if results)
        self._texts, self._results = self._texts[:last], self._results[:last]

    def content(self, tool: str, least_certain: int | None, *, binary: bool = False) -> bytes | dict[str, bytes]:
        """The content of the tool's file; for brat, that of each file by its name.

        Arguments:
            least_certain: how many texts there are, the least certain first.
            binary: for spaCy, a DocBin instead of JSON.
        """
        found = list(zip(self._texts, self._results, strict=True))
        if least_certain is not None:
            found = sorted(found, key=lambda each: min(map(_certainty, each[1]), default=1.0))[:least_certain]
        if tool == "brat":
            return self._brat(found)
        if binary:
            return self._docbin(found)
        write = {"doccano": self._doccano, "label-studio": self._label_studio, "spacy": self._spacy}[tool]
        rows = [json_text(write(text, results)) for text, results in found]
        lines = "".join(f"{row}\n" for row in rows)
        return (lines if tool == "doccano" else f"[{','.join(rows)}]\n").encode()

    def _spans(self, text: AnnotatedText, results: Sequence[Mapping[str, Any]]) -> list[FoundSpan]:
        places = character_places(text.text, self._reader.config.offsets)
        offsets = {character: offset for offset, character in places.items()}
        return [
            FoundSpan(offsets[span["start_char"]], offsets[span["end_char"]], *map(span.get, FoundSpan._fields[2:]))
            for result in results
            for span in result.get("spans", ())
        ]

    def _doccano(self, text: AnnotatedText, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A line for doccano; in one of its own, only the annotations change."""
        own = text.record if text.tool in ("doccano", "plain text") else {"text": text.text}
        key = self._reader.config.columns.get("label", "label")
        row = {name: value for name, value in own.items() if name not in (key, "label", "labels", "cats", "relations")}
        spans = self._spans(text, results)
        if "entities" not in own:
            return {**row, key: [list(span[:3]) for span in spans] or list(_labels(results))}
        names = ("id", "start_offset", "end_offset", "label")
        entities = [dict(zip(names, (number, *span[:3]), strict=True)) for number, span in enumerate(spans)]
        return {**row, "entities": entities, "relations": []}

    def _label_studio(self, text: AnnotatedText, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A task with a prediction; in one of Label Studio's own, only the predictions change."""
        own = text.record if text.tool == "Label Studio" else {"data": {"text": text.text}}
        given = [each for one in own.get("annotations") or () for each in one["result"] if "from_name" in each]
        default = {"from_name": self._reader.config.columns.get("label", "label"), "to_name": "text"}
        names = {name: given[0][name] if given else default[name] for name in default}
        found: list[tuple[str, dict[str, Any], float]] = [
            ("labels", {"start": start, "end": end, "text": part, "labels": [label]}, probability)
            for start, end, label, part, probability in self._spans(text, results)
        ]
        score = min(map(_certainty, results), default=1.0)
        found += [("choices", {"choices": list(labels)}, score)] if (labels := _labels(results)) else []
        values = [
            {"id": str(number), **names, "type": kind, "value": value, "score": probability}
            for number, (kind, value, probability) in enumerate(found)
        ]
        return {**own, "predictions": [{"model_version": self._model, "score": score, "result": values}]}

    def _spacy(self, text: AnnotatedText, results: Sequence[Mapping[str, Any]]) -> list[Any]:
        own = text.record[1] if isinstance(text.record, list) else {}
        labels, spans = _labels(results), self._spans(text, results)
        new = {"cats": labels} if labels else {"entities": [list(span[:3]) for span in spans]}
        return [text.text, {**own, **new}]

    def _docbin(self, found: Sequence[tuple[AnnotatedText, Sequence[Mapping[str, Any]]]]) -> bytes:
        """A `.spacy` file, with the tokens that the model has read."""
        from spacy.tokens import Doc, DocBin
        from spacy.vocab import Vocab

        documents, vocabulary = DocBin(store_user_data=True), Vocab()
        for text, results in found:
            tokens = [place for result in results for ends in result["offsets"] for place in ends]
            words, spaces = list[str](), list[bool]()
            for start, end in itertools.pairwise(sorted({0, len(text.text), *tokens})):
                if text.text[start:end] == " " and words:
                    spaces[-1] = True
                else:
                    words.append(text.text[start:end])
                    spaces.append(False)
            doc = Doc(vocabulary, words=words, spaces=spaces, user_data=getattr(text.record, "user_data", None))
            doc.cats = _labels(results)
            doc.set_ents([doc.char_span(*span[:3]) for span in self._spans(text, results)])
            documents.add(doc)
        return documents.to_bytes()

    def _brat(self, found: Sequence[tuple[AnnotatedText, Sequence[Mapping[str, Any]]]]) -> dict[str, bytes]:
        """The texts and their annotations. The probabilities are notes, and spans are cut at line ends."""
        files: dict[str, bytes] = {}
        for position, (text, results) in enumerate(found, start=1):
            own, lines = text.record.stem if text.tool == "brat" else "", []
            name = f"{position:05}" if not own or f"{own}.txt" in files else own
            for number, (start, _, label, part, probability) in enumerate(self._spans(text, results), start=1):
                pieces = ";".join(
                    f"{start + each.start()} {start + each.end()}" for each in re.finditer(r"[^\r\n]+", part)
                )
                lines.append(f"T{number}\t{label} {pieces}\t{' '.join(part.splitlines())}\n")
                lines.append(f"#{number}\tAnnotatorNotes T{number}\t{probability}\n")
            files |= {f"{name}.txt": text.text.encode(), f"{name}.ann": "".join(lines).encode()}
        return files


def _labels(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The predicted labels of a whole text, with their probabilities."""
    names = [(result, result.get("labels", [result.get("label")])) for result in results if "tags" not in result]
    return {name: result["probabilities"][name] for result, own in names for name in own}


def _certainty(result: Mapping[str, Any]) -> float:
    """The probability of the least certain tag or label."""
    chances = result["probabilities"]
    if "labels" in result:
        return min(max(chance, 1 - chance) for chance in chances.values())
    return min(chances) if "tags" in result else chances[result["label"]]
