"""Texts with character spans and labels as annotation tools have them: doccano, Label Studio, Prodigy, spaCy, GLiNER,
brat, INCEpTION and WebAnno (TSV 3). Plain text is read without annotations.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data_readers.columns import read_rows
from elmo_tasks.data_readers.records import Record, json_records
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError, ElmoTasksError, one_line
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.text import open_binary, read_lines
from elmo_tasks.text.prose import prose_lines

_ADVICE = "without --output-format, `predict --format reader` reads it as the data of the run"
_RELATIONS, _UNFINISHED = "relation(s)", "text(s) without an annotation"
_FLAT = ("label", "labels", "entities", "spans", "annotations", "cats", "accept")  # keys of annotations next to a text
_BRAT_KINDS = {"R": _RELATIONS, "*": _RELATIONS, "E": "event(s)", "A": "attribute(s)", "M": "attribute(s)"}
_BRAT_SPAN = re.compile(r"T\d+\t(?P<label>\S+) (?P<pieces>\d+ \d+(?:;\d+ \d+)*)\t(?P<text>.*)")
# A value in a cell of a TSV file, with a number if several tokens have it. A backslash is before marks.
_TSV_VALUE = re.compile(r"(?P<value>(?:[^\\|[]|\\.)+)(?P<number>\[\d+\])?")


class TextSpan(NamedTuple):
    """A labelled part of a text. `start` and `end`, which is exclusive, are as the tool counts them."""

    start: int
    end: int
    label: Any
    own_text: Any = None  # as the tool has it
    fault: str = ""  # what is wrong with it whatever the text is
    location: str | None = None  # its line, if that is not the one of the text


@dataclasses.dataclass(frozen=True)
class AnnotatedText:
    """A text with its annotations."""

    text: str
    spans: Sequence[TextSpan] = ()
    labels: Sequence[Any] = ()  # of the whole text
    missing: str = ""  # why there is no annotation
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what the tool has next to them, such as ids
    number: int = 0  # the line where it begins; 0 if that is not known
    location: str = ""
    is_tokenized: bool = False  # a line is a sentence of the tool, with a space between its tokens
    tool: str = ""  # that wrote the file


class Export(NamedTuple):
    """A file of a tool."""

    path: Path
    columns: Mapping[Any, str]  # the keys of `text` and `label` if they are not the usual ones
    parsing: Parsing  # gets the errors of records, and counts what is not read

    def texts(self) -> Iterator[AnnotatedText]:
        """The texts of the file. Its name, its first line or the keys of a record say which tool wrote it."""
        if self.path.suffix == ".spacy":
            yield from self._docbin()
            return
        first = next((line.strip() for _, line in read_lines(self.path) if line.strip()), "")
        is_brat = self.path.suffix == ".txt" and self.path.with_suffix(".ann").is_file()
        if is_brat or first.startswith("#FORMAT=WebAnno TSV 3"):
            with self.parsing.caught(), _as_written(self.path):
                yield self._brat() if is_brat else self._tsv()
        elif first.startswith(("{", "[")):
            lines = json_records(read_lines(self.path), self.path, self.parsing)
            for record in lines if first.startswith("{") and first != "{" else _items(self.path):
                with self.parsing.caught(), _as_written(record.location):
                    yield self._annotated(record)
        else:
            for number, line in prose_lines(read_lines(self.path), self.path, _ADVICE):
                if line.strip():
                    yield AnnotatedText(line, missing=_UNFINISHED, number=number, location=f"{self.path}:{number}")

    def _annotated(self, record: Record) -> AnnotatedText:
        """The text of a record of JSON, whose keys say which tool wrote it."""
        row, key, control, missing = record.columns, self.columns.get("text", "text"), self.columns.get("label"), ""
        found, words, fields = list[Any](), list[str](), dict[str, Any]()
        text: Any = None
        match row:
            case [str(text), dict(notes)]:
                tool = "spaCy"
                cats = [label for label, chance in notes.get("cats", {}).items() if chance >= 0.5]
                found = [*notes.get("entities", ()), *cats]
            case {"tokenized_text": list(words)}:
                tool = "GLiNER"
                text, found, missing = "", row.get("ner", []), "" if "ner" in row else _UNFINISHED
            case {"data": dict(fields)}:
                tool = "Label Studio"
                annotations = row.get("annotations", row.get("completions")) or ()
                results = [each["result"] for each in annotations if not each.get("was_cancelled")]
                self.parsing.left_out["cancelled annotation(s)"] += len(annotations) - len(results)
                self.parsing.left_out["annotation(s) of other annotators"] += len(results[1:])
                text, missing = fields.get(key), "" if results else _UNFINISHED
                found = [each for each in (results or [[]])[0] if control in (None, each.get("from_name", control))]
            case dict():  # annotations next to their text
                tool = "Prodigy" if row.keys() & {"answer", "spans"} else "doccano"
                names = [control] if control else _FLAT
                given = [row[name] for name in names if row.get(name) is not None]
                found = [each for value in given for each in (value if isinstance(value, list) else [value])]
                text, answer = row.get(key, row.get("data")), row.get("answer", "accept")
                fields = {name: row[name] for name in row if name not in (key, "data", *names, *_FLAT, "relations")}
                missing = "" if given or "answer" in row else _UNFINISHED
                missing = missing if answer == "accept" else f"text(s) with the answer {answer!r}"
                self.parsing.left_out[_RELATIONS] += len(row.get("relations") or ())
        if not isinstance(text, str):
            keys = ", ".join(fields or row) if isinstance(row, dict) else repr(row)[:80]
            expected = "a text of doccano, Label Studio, Prodigy, spaCy or GLiNER, or 'columns' that name its key"
            raise DataError(record.location, f"no string {key!r} among {keys}; expected {expected}")
        spans, labels = self._annotations(found, record)
        annotated = AnnotatedText(text, spans, labels, missing, fields, record.number, record.location, tool=tool)
        return _in_characters(annotated, [words]) if words else annotated

    def _annotations(self, values: Iterable[Any], record: Record) -> tuple[list[TextSpan], list[Any]]:
        """The spans among annotations, and the labels of the whole text."""
        spans, labels = list[TextSpan](), list[Any]()
        for value in values:
            is_result = isinstance(value, dict) and isinstance(value.get("value"), dict)  # of Label Studio
            if isinstance(value, dict):
                value = value["value"] if is_result else value
                value = {key.removesuffix("_offset"): each for key, each in value.items()}  # of doccano
            match value:
                case [int(start), int(end), label, *_] | {"start": int(start), "end": int(end), "label": label}:
                    spans.append(TextSpan(start, end, label))
                case {"start": int(start), "end": int(end), "labels": list(names)}:  # of Label Studio
                    spans += [TextSpan(start, end, name, value.get("text")) for name in names]
                case {"choices": list(names)}:
                    labels += names
                case str() | int():
                    labels.append(value)
                case {"type": "relation"}:
                    self.parsing.left_out[_RELATIONS] += 1
                case dict() if is_result and "start" not in value:
                    self.parsing.left_out["annotation(s) of other kinds"] += 1
                case _:
                    problem = f"the annotation is {value!r:.80}; expected a label, or a start, an end and a label"
                    raise DataError(record.location, problem)
        return spans, labels

    def _brat(self) -> AnnotatedText:
        """A text of brat. Offsets count its line ends as they are."""
        spans, notes = list[TextSpan](), self.path.with_suffix(".ann")
        with open_binary(self.path) as stream:
            text = stream.read().decode()
        for number, line in read_lines(notes):
            if not line.startswith("T"):
                self.parsing.left_out[_BRAT_KINDS.get(line[:1], "note(s)")] += bool(line)
            elif found := _BRAT_SPAN.fullmatch(line):
                ends = [int(each) for each in re.split("[ ;]", found["pieces"])]
                gaps = [text[end:start] for end, start in zip(ends[1:-1:2], ends[2::2], strict=True)]
                fault = f"is in pieces, {found['pieces']}" if any(gap.strip() for gap in gaps) else ""
                spans.append(TextSpan(ends[0], ends[-1], found["label"], found["text"], fault, f"{notes}:{number}"))
            else:
                raise DataError(notes, f"{line[:80]!r}; expected T1, LABEL START END, and the text, with tabs", number)
        fields = {"file": self.path.stem}
        return AnnotatedText(text, spans, fields=fields, number=1, location=str(self.path), tool="brat")

    def _tsv(self) -> AnnotatedText:
        """A text of INCEpTION or WebAnno, with its sentences and tokens."""
        layers = [line.split("|") for _, line in read_lines(self.path) if line.startswith("#T_")]
        names = [f"{layer.rpartition('.')[2]}.{feature}" for layer, *features in layers for feature in features]
        if (chosen := self.columns.get("label", "NamedEntity.value")) not in names:
            expected = f"expected {chosen}, or another as 'label' in 'columns'"
            raise DataError(self.path, f"the layers and features are {', '.join(names) or 'missing'}; {expected}")
        self.parsing.left_out["other layer(s)"] += len(layers) - 1
        column, last, sentences, spans = 3 + names.index(chosen), -1, list[list[str]](), dict[str, TextSpan]()
        for first, rows in read_rows(self.path, column + 1, self.parsing, comment="#"):
            sentences.append([cells[2] for cells in rows if "." not in cells[0]])  # others are parts of a token
            for number, cells in enumerate(rows, first):
                fault = "is a part of a token" if "." in cells[0] else ""
                last += not fault
                for found in _TSV_VALUE.finditer(cells[column]):
                    if found["value"] not in ("_", "*"):  # none, or one without a value
                        key = found["number"] or f"{cells[0]} {found['value']}"
                        begin = spans[key].start if key in spans else last
                        label = re.sub(r"\\(.)", r"\1", found["value"])
                        spans[key] = TextSpan(begin, last, label, None, fault, f"{self.path}:{number}")
        fields, tool = {"file": self.path.stem}, "INCEpTION or WebAnno"
        given = AnnotatedText("", [*spans.values()], fields=fields, number=1, location=str(self.path), tool=tool)
        return _in_characters(given, sentences)

    def _docbin(self) -> Iterator[AnnotatedText]:
        """The documents of a `.spacy` file."""
        spacy = import_spacy()
        with open_binary(self.path) as stream, _as_written(self.path):
            documents = list(spacy.tokens.DocBin().from_bytes(stream.read()).get_docs(spacy.vocab.Vocab()))
        for number, doc in enumerate(documents, start=1):
            entities = [[each.start_char, each.end_char, each.label_] for each in doc.ents]
            pair = [doc.text, {"entities": entities, "cats": doc.cats}]
            missing = "" if doc.cats or doc.has_annotation("ENT_IOB") else _UNFINISHED
            text = self._annotated(Record(pair, 0, f"{self.path}: document {number}"))
            yield dataclasses.replace(text, missing=missing)


def import_spacy() -> Any:
    """The package spaCy; raises an ElmoTasksError if it is not installed."""
    try:
        import spacy
    except ImportError:
        raise ElmoTasksError("files of spaCy need spaCy; install it with: pip install 'elmo-tasks[spacy]'") from None
    return spacy


@contextlib.contextmanager
def _as_written(location: str | Path) -> Iterator[None]:
    """For a block that reads what a tool should have written: other content is a DataError."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, zlib.error) as error:
        problem = f"{type(error).__name__}: {one_line(error)}; expected an export of an annotation tool"
        raise DataError(location, problem) from None


def _items(path: Path) -> Iterator[Record]:
    """The items of a JSON array, or another value as the only one."""
    text = "\n".join(line for _, line in read_lines(path))
    value = parse_json(text, path, "a JSON array of texts, or an object on each line")
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        yield Record(item, 0, f"{path}: record {number}")


def _in_characters(given: AnnotatedText, sentences: Sequence[Sequence[str]]) -> AnnotatedText:
    """A text of these tokens. Its spans, which end with a token, become spans of characters."""
    places = list(itertools.accumulate((len(word) + 1 for words in sentences for word in words), initial=0))
    spans = list[TextSpan]()
    for span in given.spans:
        if 0 <= span.start <= span.end < len(places) - 1:
            spans.append(span._replace(start=places[span.start], end=places[span.end + 1] - 1))
        else:
            spans.append(span._replace(fault=f"is not within the {len(places) - 1} tokens of its text"))
    return dataclasses.replace(given, text="\n".join(map(" ".join, sentences)), spans=spans, is_tokenized=True)
