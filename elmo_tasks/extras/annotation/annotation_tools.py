"""Texts with character spans and labels as annotation tools have them: doccano, Label Studio, Prodigy, spaCy, GLiNER,
brat, INCEpTION and WebAnno (TSV 3). Plain text is read without annotations.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data_readers.columns import read_rows
from elmo_tasks.data_readers.records import Record, json_records
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError, ElmoTasksError, one_line
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.paths import plain_name
from elmo_tasks.files.text import open_binary, read_lines
from elmo_tasks.text.prose import prose_lines

_ADVICE = "without --output-format, `predict --format reader` reads it as the data of the run"
BREAK = "\u2029"
"""Stands between the blocks of a page."""
_RELATIONS, _UNFINISHED = "relation(s)", "text(s) without an annotation"
_UNNAMED = f"{_UNFINISHED} named label (other names of controls: dataset_reader.columns.label)"
REJECTED = "text(s) with the answer 'reject'"
PARTIAL = "partial answer(s), as of Prodigy's ner.teach, which leave other spans and labels open,"
TASK_KEYS = ("data", "annotations", "completions", "predictions")
"""The keys of a task of Label Studio that have its text and what was found in it."""
_FLAT = ("label", "labels", "entities", "spans", "annotations", "cats", "accept")  # keys of annotations next to a text
_TOOLS = {"annotation_id": "Label Studio", "answer": "Prodigy", "spans": "Prodigy", "cats": "spaCy"}  # by their keys
_SPAN_KEYS, _LABEL_KEYS = {"entities", "spans", "ner"}, {"cats", "accept"}
_ANNOTATORS = ("annotator", "_annotator_id", "_session_id")  # keys of who has annotated a text
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_HTML_LABELS = 'hypertextlabels"'  # in Label Studio's annotations of pages
_INLINE = {"a", "b", "em", "font", "i", "mark", "small", "span", "strong", "sub", "sup", "u"}
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
    """A text with the annotations of one person."""

    text: str
    spans: Sequence[TextSpan] = ()
    labels: Sequence[Any] = ()  # of the whole text
    missing: str = ""  # why there is no annotation
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what the tool has next to them, such as ids
    number: int = 0  # the line where it begins; 0 if that is not known
    location: str = ""
    is_tokenized: bool = False  # a line is a sentence of the tool, with a space between its tokens
    is_html: bool = False  # the text of a page, with a `BREAK` between its blocks, which the tool does not count
    tool: str = ""  # that wrote the file
    annotator: str = ""
    is_truth: bool = False  # the tool says that this annotation is the right one
    document: Any = None  # what all annotations of the same text have in common; None if there is only one


class Export(NamedTuple):
    """A file of a tool."""

    path: Path
    columns: Mapping[Any, str]  # the keys of `text` and `label` if they are not the usual ones
    parsing: Parsing  # gets the errors of records, and counts what is not read
    task: str  # what is read: "tagging" for the spans, another for the labels of whole texts
    annotator: str = ""  # whose file it is, if the tool writes one for each annotator

    def texts(self) -> Iterator[AnnotatedText]:
        """The texts of the file, once for each annotator.

        Its name, its first line or the keys of a record say which tool wrote it.
        """
        ending = Path(plain_name(self.path)).suffix.lower()
        if ending == ".spacy":
            yield from self._docbin()
            return
        first = next((line.strip() for _, line in read_lines(self.path) if line.strip()), "")
        is_brat = ending == ".txt" and self.path.with_suffix(".ann").is_file()
        if is_brat or first.startswith("#FORMAT=WebAnno TSV 3"):
            with self.parsing.caught(), _as_written(self.path):
                yield self._brat() if is_brat else self._tsv()
        elif ending in _SEPARATORS or first.startswith(("{", "[")):
            is_html = any(_HTML_LABELS in line for _, line in read_lines(self.path))
            is_pair = first.startswith('["') and first.endswith("]")  # of spaCy, on a line of its own
            is_lines = is_pair or (first.startswith("{") and first != "{")
            with contextlib.closing(read_lines(self.path)) as lines:
                records = json_records(lines, self.path, self.parsing, (dict, list))
                for record in records if is_lines else _items(self.path, _SEPARATORS.get(ending)):
                    with self.parsing.caught(), _as_written(record.location):
                        yield from self._annotated(record, is_html=is_html)
        else:
            with contextlib.closing(read_lines(self.path)) as lines:
                for number, line in prose_lines(lines, self.path, _ADVICE):
                    if line.strip():
                        yield AnnotatedText(line, missing=_UNFINISHED, number=number, location=f"{self.path}:{number}")

    def _annotated(self, record: Record, *, is_html: bool = False) -> Iterator[AnnotatedText]:
        """The text of a record of JSON, whose keys say which tool wrote it, once for each annotator."""
        row, key, control = record.columns, self.columns.get("text", "text"), self.columns.get("label")
        is_pair = isinstance(row, list) and len(row) == 2 and isinstance(row[1], dict)  # of spaCy
        fields = row = {key: row[0], **row[1]} if is_pair else row
        tool, text, words, missing = "", None, list[str](), ""
        document: Any = None
        named = set[str]()  # the keys of annotations
        notes = list[dict[str, Any]]()  # the annotations of each person, as in Label Studio
        match row:
            case {"tokenized_text": list(words)}:
                tool, text, named = "GLiNER", "", {"ner"} & row.keys()
                notes = [{"result": row[name]} for name in named]
                fields = {name: row[name] for name in row if name not in ("tokenized_text", *named)}
            case {"data": dict(data)}:
                tool, text, document = "Label Studio", data.get(key), record.location
                notes = row.get("annotations", row.get("completions")) or []
            case dict():  # annotations next to their text
                tool = "spaCy" if is_pair else next((_TOOLS[name] for name in _TOOLS if name in row), "doccano")
                text_key, answer = key if key in row else "data", row.get("answer", "accept")
                text, missing = row.get(text_key), "" if answer == "accept" else f"text(s) with the answer {answer!r}"
                named = {name for name in ([control] if control else _FLAT) if row.get(name) not in (None, "")}
                fields = {name: row[name] for name in row if name not in (text_key, "relations", *named)}
                leave_out(self.parsing, _RELATIONS, record.location, len(row.get("relations") or ()))
                values = [each for name in row if name in named for each in _values(row[name], record.location)]
                who = next((row[name] for name in _ANNOTATORS if row.get(name)), self.annotator)
                users = {each.get("user", who): None for each in values if isinstance(each, dict)} or {who: None}
                for user in users if named or "answer" in row else ():  # several in old files of doccano
                    own = [each for each in values if not isinstance(each, dict) or each.get("user", who) == user]
                    notes.append({"result": own, "completed_by": user})
                if who or tool == "Prodigy" or len(users) > 1:
                    document = (text, row.get("id") if tool == "Label Studio" else None)
        if not isinstance(text, str):
            keys = ", ".join(row.get("data", row) if tool == "Label Studio" else row) if tool else repr(row)[:80]
            expected = "a text of doccano, Label Studio, Prodigy, spaCy or GLiNER, or 'columns' that name its key"
            raise DataError(record.location, f"no string {key!r} among {keys}; expected {expected}")
        finished = [each for each in notes if not each.get("was_cancelled")]
        leave_out(self.parsing, "cancelled annotation(s)", record.location, len(notes) - len(finished))
        unnamed = _UNNAMED if tool == "Label Studio" and "data" not in row and not control else _UNFINISHED
        missing = missing or ("" if finished else unnamed) or (PARTIAL if self._is_partial(row) else "")
        about: dict[str, Any] = {"fields": fields, "number": record.number, "location": record.location, "tool": tool}
        about |= {"is_html": is_html, "document": document}
        text = _visible(text) if is_html else text
        for each in finished or [{}]:
            spans, labels = self._annotations(each.get("result", ()), record)
            has_spans, has_labels = bool(spans or named & _SPAN_KEYS), bool(labels or named & _LABEL_KEYS)
            others = "spans" if has_spans else "labels"
            is_other = has_spans != has_labels and has_spans != (self.task == "tagging")
            reason = missing or (f"text(s) with {others} only, for another 'task'," if is_other else "")
            who, is_truth = _person(each.get("completed_by")), True in (each.get("ground_truth"), each.get("honeypot"))
            annotated = AnnotatedText(text, spans, labels, reason, annotator=who, is_truth=is_truth, **about)
            yield _in_characters(annotated, [words]) if words else annotated

    def _is_partial(self, row: Mapping[str, Any]) -> bool:
        """Whether Prodigy only asked if a span, or a label, is right."""
        view, spans = row.get("_view_id"), list(row.get("spans") or [])
        if self.task == "tagging":
            return view == "ner" and len(spans) == 1 and "answer" not in spans[0]
        return self.task == "multi_label" and view == "classification" and "label" in row

    def _annotations(self, values: Iterable[Any], record: Record) -> tuple[list[TextSpan], list[Any]]:
        """The spans among annotations, and the labels of the whole text."""
        spans, labels, control = list[TextSpan](), list[Any](), self.columns.get("label")
        is_table = Path(plain_name(self.path)).suffix.lower() in _SEPARATORS
        for value in values:
            is_result = isinstance(value, dict) and isinstance(value.get("value"), dict)  # of Label Studio
            if is_result and control not in (None, value.get("from_name", control)):
                continue
            if is_result and self.parsing.needs_labels:
                self._check_control(value, record)
            if isinstance(value, dict):
                value = value["value"] if is_result else value
                # doccano has `start_offset`, and pages in Label Studio `hypertextlabels`
                value = {key.removesuffix("_offset").removeprefix("hypertext"): each for key, each in value.items()}
                value |= value.get("globalOffsets", {})
            other = ""
            match value:
                case {"answer": str(answer)} if answer != "accept":
                    other = f"span(s) with the answer {answer!r}"
                case [int(start), int(end), label, *_] | {"start": int(start), "end": int(end), "label": label}:
                    spans.append(TextSpan(start, end, label))
                case {"start": int(start), "end": int(end), "labels": [_, *_] as names}:  # of Label Studio
                    spans += [TextSpan(start, end, name, value.get("text")) for name in names]
                case {"choices": list(names)} if "start" not in value:
                    labels += names
                case str() if "#" in value.strip("#") and is_table and "annotation_id" not in record.columns:
                    problem = f"{value!r:.80} can be several labels, which doccano joins in tables"
                    raise DataError(record.location, f"{problem}; export JSON lines")
                case str() | int():
                    labels.append(value)
                case {"type": "relation"}:
                    other = _RELATIONS
                case dict() if not value.get("labels", not is_result):  # a result of another kind has no key of labels
                    other = "annotation(s) of other kinds, or without a label"
                case _:
                    problem = f"the annotation is {value!r:.80}; expected a label, or a start, an end and a label"
                    raise DataError(record.location, problem)
            leave_out(self.parsing, other, record.location, bool(other))
        odd = [span.label for span in spans if isinstance(span.label, (dict, list))]
        if odd and self.parsing.needs_labels:
            raise DataError(record.location, f"the label of a span is {odd[0]!r:.80}; expected a string")
        return spans, labels

    def _check_control(self, result: Mapping[str, Any], record: Record) -> None:
        """Raises an `ElmoTasksError` if Label Studio has two controls of the kind that is learned, or two texts."""
        value, name, of = result["value"], result.get("from_name"), result.get("to_name")
        kind = "labels" if self.task == "tagging" else "choices"
        is_learned = any(key.endswith(kind) and value[key] for key in value)
        if not is_learned or ("start" in value) != (kind == "labels"):
            return
        known = self.parsing.found.setdefault("controls", {}) if "label" not in self.columns else {}
        if len(known := known | {name: of}) > 1:
            names = " and ".join(map(repr, known))
            problem = f"the annotations have the controls {names}; set dataset_reader.columns.label to one of them"
            raise ElmoTasksError(f"{record.location}: {problem}")
        self.parsing.found["controls"] = known
        if "text" not in self.columns and of != "text" and isinstance(record.columns["data"].get(of), str):
            problem = f"the annotations are of {of!r}, and 'text' is read; set dataset_reader.columns.text to {of!r}"
            raise ElmoTasksError(f"{record.location}: {problem}")

    def _brat(self) -> AnnotatedText:
        """A text of brat. Offsets count its line ends as they are."""
        spans, notes = list[TextSpan](), self.path.with_suffix(".ann")
        with open_binary(self.path) as stream:
            text = stream.read().decode()
        for number, line in read_lines(notes):
            if not line.startswith("T"):
                kind = _BRAT_KINDS.get(line[:1], "note(s)")
                leave_out(self.parsing, kind, f"{notes}:{number}", bool(line))
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
        leave_out(self.parsing, "other layer(s)", str(self.path), len(layers) - 1)
        column, last, sentences = 3 + names.index(chosen), -1, list[list[str]]()
        spans, bare = dict[str, TextSpan](), set[str]()  # those without a value
        for first, rows in read_rows(self.path, column + 1, self.parsing, comment="#"):
            whole = [cells[2] for cells in rows if "." not in cells[0]]  # others are parts of a token
            sentences.append([word.replace("\\\\", "\\") for word in whole])
            for number, cells in enumerate(rows, first):
                fault = "is a part of a token" if "." in cells[0] else ""
                last += not fault
                for found in _TSV_VALUE.finditer(cells[column]):
                    key, location = found["number"] or f"{cells[0]} {found['value']}", f"{self.path}:{number}"
                    if found["value"] == "*" and key not in bare:
                        bare.add(key)
                        leave_out(self.parsing, f"span(s) without a {chosen}", f"{location}, {cells[2]!r}")
                    elif found["value"] not in ("_", "*"):  # none
                        label = re.sub(r"\\(.)", r"\1", found["value"])
                        before = spans.get(key, TextSpan(last, last, label))
                        if before.label != label:
                            fault = f"has the values {before.label!r} and {label!r}"
                        spans[key] = TextSpan(before.start, last, label, None, fault or before.fault, location)
        folder = self.path.parent  # in a project, that of a document, such as letter.txt, with a file of each annotator
        about: dict[str, Any] = {"annotator": self.annotator, "is_truth": self.annotator == "CURATION_USER"}
        about |= {"fields": {"file": (folder if folder.suffix else self.path).stem}, "tool": "INCEpTION or WebAnno"}
        about["document"] = (folder.name, str(sentences)) if self.annotator else None
        given = AnnotatedText("", [*spans.values()], number=1, location=str(self.path), **about)
        return _in_characters(given, sentences)

    def _docbin(self) -> Iterator[AnnotatedText]:
        """The documents of a `.spacy` file."""
        spacy = import_spacy()
        with open_binary(self.path) as stream, _as_written(self.path):
            documents = list(spacy.tokens.DocBin().from_bytes(stream.read()).get_docs(spacy.vocab.Vocab()))
        for number, doc in enumerate(documents, start=1):
            notes: dict[str, Any] = {"cats": doc.cats or None}
            if doc.has_annotation("ENT_IOB"):
                notes["entities"] = [[each.start_char, each.end_char, each.label_] for each in doc.ents]
            grouped = sum(map(len, doc.spans.values()))
            leave_out(self.parsing, "span(s) of groups", f"{self.path}: document {number}", grouped)
            is_open = self.task == "tagging" and not doc.has_annotation("ENT_IOB", require_complete=True)
            for text in self._annotated(Record([doc.text, notes], 0, f"{self.path}: document {number}")):
                yield dataclasses.replace(text, missing=text.missing or PARTIAL) if is_open else text


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
    except (AttributeError, LookupError, TypeError, ValueError, csv.Error, zlib.error) as error:
        problem = f"{type(error).__name__}: {one_line(error)}; expected an export of an annotation tool"
        raise DataError(location, problem) from None


def leave_out(parsing: Parsing, what: str, location: str, number: int = 1) -> None:
    """Counts what is not read. The log also says where the first one is."""
    if number:
        parsing.left_out[parsing.found.setdefault(("left out", what), f"{what} (first: {location})")] += number


def _items(path: Path, separator: str | None) -> Iterator[Record]:
    """The rows of a table, if there is a separator; or the items of a JSON array, or another value as the only one."""
    value: Any
    if separator:
        with open_binary(path) as stream, _as_written(path):
            lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
            value = list(csv.DictReader(lines, delimiter=separator, strict=True))
        if uneven := next((number for number, row in enumerate(value, 1) if None in (*row, *row.values())), 0):
            raise DataError(f"{path}: record {uneven}", "has more or fewer cells than the header row")
    else:
        text = "\n".join(line for _, line in read_lines(path))
        value = parse_json(text, path, "a JSON array of texts, or an object on each line")
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        yield Record(item, 0, f"{path}: record {number}")


def _values(value: Any, location: str) -> list[Any]:
    """The annotations in a value next to a text."""
    if isinstance(value, str) and (value.startswith(("[{", '{"')) or value == "[]"):  # in a cell of a table
        value = parse_json(value, location, "annotations")
    if isinstance(value, dict) and all(isinstance(each, (int, float)) for each in value.values()):  # of spaCy
        value = [label for label, chance in value.items() if chance >= 0.5]
    return value if isinstance(value, list) else [value]


def _person(value: Any) -> str:
    """The name of an annotator, which is an object with an address in some files of Label Studio."""
    return str(value.get("email", value.get("id")) if isinstance(value, dict) else value or "")


def _visible(page: str) -> str:
    """The text of a page of HTML, with a `BREAK` where a block begins or ends."""
    pieces = list[str]()
    parser: Any = HTMLParser()
    parser.handle_data = pieces.append
    parser.handle_starttag = lambda tag, _: pieces.append("" if tag in _INLINE else BREAK)
    parser.handle_endtag = lambda tag: pieces.append("" if tag in _INLINE else BREAK)
    parser.feed(page)
    parser.close()
    return "".join(pieces)


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
