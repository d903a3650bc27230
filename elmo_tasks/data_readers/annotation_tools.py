"""Texts with character spans and labels as annotation tools have them: doccano, Label Studio, Prodigy, spaCy, GLiNER,
brat, INCEpTION and WebAnno (TSV 3). Plain text is read without annotations.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.data_readers.records import Record, json_records
from elmo_tasks.errors import DataError, ElmoTasksError, one_line
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.paths import plain_name, stored_file
from elmo_tasks.files.text import open_binary, read_lines

_RELATIONS, _OTHERS, _UNFINISHED = "relation(s)", "annotation(s) of other annotators", "text(s) without an annotation"
_FLAT = ("label", "labels", "entities", "spans", "cats", "accept")  # the keys of annotations next to their text
_BRAT_KINDS = {"R": _RELATIONS, "*": _RELATIONS, "E": "event(s)", "A": "attribute(s)", "M": "attribute(s)"}
_BRAT_SPAN = re.compile(r"T\d+\t(?P<label>\S+) (?P<pieces>\d+ \d+(?:;\d+ \d+)*)\t(?P<text>.*)")
# A value in a cell of a TSV file, with a number if several tokens have it. A backslash is before marks.
_TSV_VALUE = re.compile(r"(?P<value>(?:[^\\|[]|\\.)+)(?P<number>\[\d+\])?")


class TextSpan(NamedTuple):
    """A labelled part of a text. `start` and `end`, which is exclusive, are as the tool counts them."""

    start: int
    end: int
    label: Any
    own_text: str | None = None  # as the tool has it
    fault: str = ""  # what is wrong with it whatever the text is
    location: str | None = None  # its line, if that is not the one of the text


class AnnotatedText(NamedTuple):
    """A text with its annotations."""

    text: str
    spans: Sequence[TextSpan]
    labels: Sequence[Any]  # of the whole text
    missing: str = ""  # why there is no annotation
    sentences: Sequence[list[tuple[int, int]]] | None = None  # the tool's own tokens, as characters
    tool: str = ""
    record: Any = None  # what the tool's file has for it
    number: int = 1  # the line where it begins
    location: str = ""


class Export(NamedTuple):
    """A file of a tool.

    Arguments:
        columns: the keys of `text` and `label` if they are not the usual ones.
        bad_units: gets the errors of records.
        left_out: counts what is not read.
    """

    path: Path
    columns: Mapping[str, str]
    bad_units: BadUnits
    left_out: Counter[str]

    def texts(self) -> Iterator[AnnotatedText]:
        """The texts of the file. Its name, its first line or the keys of its first record say which tool wrote it."""
        if self.path.suffix == ".spacy":
            yield from self._docbin()
            return
        first = next((line.strip() for _, line in read_lines(self.path) if line.strip()), "")
        if plain_name(self.path).endswith(".txt") and notes_file(self.path).is_file():
            with self.bad_units.caught():
                yield self._brat()
        elif first.startswith("#FORMAT=WebAnno TSV 3"):
            with self.bad_units.caught(), _written_by("INCEpTION or WebAnno", self.path):
                yield self._tsv()
        elif first.startswith("{") and first != "{":
            yield from self._json(json_records(read_lines(self.path), self.path, self.bad_units))
        elif re.match(r'\[\s*"', first):  # a pair on each line
            lines = ((number, line) for number, line in read_lines(self.path) if line.strip())
            parsed = (
                (number, parse_json(line, self.path, "a text and its annotations", number)) for number, line in lines
            )
            yield from self._json(Record(value, number, f"{self.path}:{number}") for number, value in parsed)
        elif first.startswith(("[", "{")):
            yield from self._json(_items("\n".join(line for _, line in read_lines(self.path)), self.path))
        else:
            for number, line in read_lines(self.path):
                if line.strip():
                    location = f"{self.path}:{number}"
                    yield AnnotatedText(line, (), (), _UNFINISHED, None, "plain text", None, number, location)

    def _json(self, records: Iterable[Record]) -> Iterator[AnnotatedText]:
        tool, seen = "", set[Any]()
        read: Callable[[Any], AnnotatedText] = self._flat
        for record in records:
            with self.bad_units.caught():
                if not tool:
                    tool, read = self._recognized(record)
                with _written_by(tool, record.location):
                    text = read(record.columns)
                key = record.columns.get("id") if "annotation_id" in record.columns else None
                if key is not None and key in seen:  # Label Studio's JSON-MIN has a record for each annotator
                    self.left_out[_OTHERS] += 1
                    continue
                seen.add(key)
                yield text._replace(tool=tool, record=record.columns, number=record.number, location=record.location)

    def _recognized(self, first: Record) -> tuple[str, Callable[[Any], AnnotatedText]]:
        if isinstance(first.columns, list):
            return "spaCy", self._tuple
        keys = set(first.columns) if isinstance(first.columns, dict) else set()
        if "tokenized_text" in keys:
            return "GLiNER", self._tokens
        if "data" in keys and isinstance(first.columns["data"], dict):
            return "Label Studio", self._task
        for tool, own in (("Label Studio (JSON-MIN)", {"annotation_id"}), ("Prodigy", {"spans", "answer", "accept"})):
            if keys & own:
                return tool, self._flat
        if keys & {"text", "data", self.columns.get("text")}:
            return "doccano", self._flat
        expected = "those of doccano, Label Studio, Prodigy, spaCy or GLiNER, or the key of the text in 'columns'"
        raise DataError(first.location, f"the keys are {', '.join(keys) or 'missing'}; expected {expected}")

    def _flat(self, row: dict[str, Any]) -> AnnotatedText:
        """Annotations next to their text: doccano, Prodigy, Label Studio's JSON-MIN."""
        keys = [self.columns["label"]] if "label" in self.columns else _FLAT
        given = [row[key] for key in keys if row.get(key) is not None]
        values = [value for each in given for value in (each if isinstance(each, list) else [each])]
        spans, labels = self._annotations(values)
        for number, (start, end, *_) in enumerate(spans):
            own = [each for each in row.get("tokens") or () if start <= each["start"] and each["end"] <= end]
            if own and (own[0]["start"], own[-1]["end"]) == (start, end):
                spans[number] = spans[number]._replace(own_text=" ".join(each["text"] for each in own))
        self.left_out[_RELATIONS] += len(row.get("relations") or ())
        answer = row.get("answer", "accept")
        missing = "" if given or "annotation_id" in row else _UNFINISHED
        missing = missing if answer == "accept" else f"text(s) with the answer {answer!r}"
        return AnnotatedText(self._text(row), spans, labels, missing)

    def _task(self, row: dict[str, Any]) -> AnnotatedText:
        """A task of Label Studio."""
        annotations = row.get("annotations", row.get("completions")) or ()
        finished = [each for each in annotations if not each.get("was_cancelled")]
        self.left_out["cancelled annotation(s)"] += len(annotations) - len(finished)
        self.left_out[_OTHERS] += len(finished[1:])
        results = finished[0]["result"] if finished else ()
        chosen = [each for each in results if self.columns.get("label") in (None, each.get("from_name"))]
        parts = self._annotations(each.get("value", each) for each in chosen)
        return AnnotatedText(self._text(row["data"]), *parts, "" if finished else _UNFINISHED)

    def _tuple(self, row: list[Any]) -> AnnotatedText:
        """A text and its annotations, as spaCy 2 has them."""
        labels = [label for label, value in row[1].get("cats", {}).items() if value >= 0.5]
        return AnnotatedText(row[0], *self._annotations([*row[1].get("entities", ()), *labels]))

    def _tokens(self, row: dict[str, Any]) -> AnnotatedText:
        """GLiNER's tokens, with spans that end with a token."""
        text, sentences = _text_of([row["tokenized_text"]])
        places, (spans, _) = sentences[0], self._annotations(row.get("ner") or ())
        for number, (start, end, *_) in enumerate(spans):
            if 0 <= start <= end < len(places):
                spans[number] = spans[number]._replace(start=places[start][0], end=places[end][1])
            else:
                spans[number] = spans[number]._replace(fault=f"is not within the {len(places)} tokens of its text")
        return AnnotatedText(text, spans, (), "" if "ner" in row else _UNFINISHED, sentences)

    def _text(self, row: dict[str, Any]) -> str:
        strings = [key for key, value in row.items() if isinstance(value, str)]
        usual = [key for key in ("text", "data") if key in row] or (strings if len(strings) == 1 else ["text"])
        key = self.columns.get("text", usual[0])
        if not isinstance(row.get(key), str):
            raise ValueError(f"{key!r} is not a text; name its key in 'columns'")
        return row[key]

    def _annotations(self, values: Iterable[Any]) -> tuple[list[TextSpan], list[Any]]:
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
                ends: Any = (value.get(name, value.get(f"{name}_offset")) for name in ("start", "end"))
                start, end = ends
                spans += [
                    TextSpan(start, end, each, value.get("text")) for each in value.get("labels", [value.get("label")])
                ]
            else:
                self.left_out[_RELATIONS if value.get("type") == "relation" else "annotation(s) of other kinds"] += 1
        if wrong := [span[:3] for span in spans if list(map(type, span[:3])) not in ([int, int, str], [int] * 3)]:
            raise ValueError(f"a span is {wrong[0]}, not a start, an end and a label")
        return spans, labels

    def _brat(self) -> AnnotatedText:
        """A text of brat. Offsets count its line ends as they are."""
        spans, notes = list[TextSpan](), notes_file(self.path)
        with open_binary(self.path) as stream, _written_by("brat", self.path):
            text = stream.read().decode()
        for number, line in read_lines(notes):
            if not line.startswith("T"):
                self.left_out[_BRAT_KINDS.get(line[:1], "note(s)")] += bool(line)
            elif found := _BRAT_SPAN.fullmatch(line):
                ends = [int(each) for each in re.split("[ ;]", found["pieces"])]
                gaps = [text[end:start] for end, start in zip(ends[1:-1:2], ends[2::2], strict=True)]
                fault = f"is in pieces, {found['pieces']}" if any(gap.strip() for gap in gaps) else ""
                spans.append(TextSpan(ends[0], ends[-1], found["label"], found["text"], fault, f"{notes}:{number}"))
            else:
                raise DataError(notes, f"{line[:80]!r}; expected T1, LABEL START END, and the text, with tabs", number)
        return AnnotatedText(text, spans, (), "", None, "brat", self.path, 1, str(self.path))

    def _tsv(self) -> AnnotatedText:
        """The text of INCEpTION or WebAnno, with its sentences and tokens."""
        lines = list(read_lines(self.path))
        column = self._tsv_column([line for _, line in lines if line.startswith("#T_")])
        rows = [(number, line.split("\t")) for number, line in lines if line[:1].isdigit()]
        words = [cells for _, cells in rows if "." not in cells[0]]  # others are parts of a token
        sentences = itertools.groupby(words, key=lambda cells: cells[0].partition("-")[0])
        text, places = _text_of([[cells[2] for cells in group] for _, group in sentences])
        tokens = dict(zip((cells[0] for cells in words), itertools.chain.from_iterable(places), strict=True))
        begins = {cells[0]: int(cells[1].partition("-")[0]) for cells in words}
        spans: dict[str, TextSpan] = {}
        for number, cells in rows:
            token = cells[0].partition(".")[0]
            start, end = tokens[token]
            if token != cells[0]:
                start, end = (start + int(each) - begins[token] for each in cells[1].split("-"))
            for found in _TSV_VALUE.finditer(cells[column]):
                key = found["number"] or f"{cells[0]} {found['value']}"
                if found["value"] not in ("_", "*"):
                    label = re.sub(r"\\(.)", r"\1", found["value"])
                    start = spans[key].start if key in spans else start
                    spans[key] = TextSpan(start, end, label, location=f"{self.path}:{number}")
        location, tool = str(self.path), "INCEpTION or WebAnno"
        return AnnotatedText(text, list(spans.values()), (), "", places, tool, self.path, rows[0][0], location)

    def _tsv_column(self, layers: Sequence[str]) -> int:
        """The column of the chosen layer or feature; by default that of named entities, or of the only layer."""
        self.left_out["other layer(s)"] += len(layers) - 1
        parts = [(layer, *layer.partition("=")[2].split("|")) for layer in layers]
        cells = [(layer, name.rpartition(".")[2], feature) for layer, name, *rest in parts for feature in rest]
        columns = {f"{name}.{feature}": at for at, (layer, name, feature) in enumerate(cells, 3) if "#T_SP" in layer}
        names = list(dict.fromkeys(name.partition(".")[0] for name in columns))
        chosen = self.columns.get("label", names[0] if len(names) == 1 else "NamedEntity")
        for name in (chosen, f"{chosen}.value", *(each for each in columns if each.startswith(f"{chosen}."))):
            if name in columns:
                return columns[name]
        expected = f"expected {chosen!r}, or another as 'label' in the reader's columns"
        raise DataError(self.path, f"the layers of spans are {', '.join(columns) or 'missing'}; {expected}")

    def _docbin(self) -> Iterator[AnnotatedText]:
        """The documents of a `.spacy` file."""
        _, docbin, vocabulary = spacy_classes(self.path)
        with open_binary(self.path) as stream, _written_by("spaCy", self.path):
            documents = list(docbin().from_bytes(stream.read()).get_docs(vocabulary()))
        for number, doc in enumerate(documents, start=1):
            row = doc.to_json()
            text = self._tuple([doc.text, {"entities": row["ents"], "cats": row.get("cats", {})}])
            yield text._replace(tool="spaCy", record=doc, number=number, location=f"{self.path}: document {number}")


def spacy_classes(path: str | Path) -> tuple[Any, Any, Any]:
    """spaCy's Doc, DocBin and Vocab, for a file; raises an ElmoTasksError if it is not installed."""
    try:
        from spacy.tokens import Doc, DocBin
        from spacy.vocab import Vocab
    except ImportError:
        raise ElmoTasksError(f"{path}: needs spaCy; install it with: pip install 'elmo-tasks[spacy]'") from None
    return Doc, DocBin, Vocab


@contextlib.contextmanager
def _written_by(tool: str, location: str | Path) -> Iterator[None]:
    """For a block that reads what a tool should have written: other content is a DataError."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, zlib.error) as error:
        raise DataError(location, f"{type(error).__name__}: {one_line(error)}; expected an export of {tool}") from None


def notes_file(path: Path) -> Path:
    """The file with the annotations of a text of brat."""
    return stored_file(path.with_name(plain_name(path)).with_suffix(".ann"))


def _items(text: str, path: Path) -> Iterator[Record]:
    """The items of a JSON array, with the lines where they begin; or another value as the only one."""
    value = parse_json(text, path, "a JSON array of texts, or an object on each line")
    end = text.index("[") + 1 if isinstance(value, list) else 0
    line = text.count("\n", 0, end) + 1
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        begin = re.compile(r"[\s,]*").match(text, end).end()  # type: ignore[union-attr]
        line += text.count("\n", end, begin)
        yield Record(item, line, f"{path}:{line}: record {number}")
        end = json.JSONDecoder().raw_decode(text, begin)[1]
        line += text.count("\n", begin, end)


def _text_of(sentences: Sequence[Sequence[str]]) -> tuple[str, list[list[tuple[int, int]]]]:
    """Tokens as a text with a line for each sentence and spaces between its tokens, and where each of them is."""
    ends = itertools.accumulate((len(token) + 1 for tokens in sentences for token in tokens), initial=0)
    places = ((start, end - 1) for start, end in itertools.pairwise(ends))
    return "\n".join(map(" ".join, sentences)), [[next(places) for _ in tokens] for tokens in sentences]
