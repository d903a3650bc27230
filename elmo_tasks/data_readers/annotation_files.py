"""The files of annotation tools: JSON (`annotated_texts`), brat, INCEpTION and WebAnno (TSV 3), spaCy; plain text."""

from __future__ import annotations

import itertools
import logging
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from elmo_tasks.data_readers.annotated_texts import (
    RELATIONS,
    UNFINISHED,
    AnnotatedText,
    TextSpan,
    json_texts,
    text_of_sentences,
)
from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.paths import plain_name, stored_file
from elmo_tasks.files.text import open_binary, read_lines

logger = logging.getLogger(__name__)

_BRAT_KINDS = {"R": RELATIONS, "*": RELATIONS, "E": "event(s)", "A": "attribute(s)", "M": "attribute(s)"}
_BRAT_SPAN = re.compile(r"T\d+\t(?P<label>\S+) (?P<pieces>\d+ \d+(?:;\d+ \d+)*)\t(?P<text>.*)")
# A value in a cell of a TSV file, with a number if several tokens have it. A backslash is before marks.
_TSV_VALUE = re.compile(r"(?P<value>(?:[^\\|[]|\\.)+)(?P<number>\[\d+\])?")


def notes_file(path: Path) -> Path:
    """The file with the annotations of a text of brat."""
    return stored_file(path.with_name(plain_name(path)).with_suffix(".ann"))


def annotated_texts(
    files: Sequence[Path], columns: Mapping[str, str], bad_units: BadUnits, left_out: Counter[str]
) -> Iterator[AnnotatedText]:
    """The texts of files; arguments: see `json_texts`. The log says which tool has written them."""
    tool = ""
    for number, file in enumerate(files):
        for text in _texts(file, columns, bad_units, left_out):
            if text.tool != tool:
                tool = text.tool
                logger.info("%s: the format is that of %s", file, tool)
            yield text._replace(file=number, location=text.location or f"{file}:{text.number}")


def _texts(
    file: Path, columns: Mapping[str, str], bad_units: BadUnits, left_out: Counter[str]
) -> Iterator[AnnotatedText]:
    if file.suffix == ".spacy":
        yield from _docbin_texts(file)
        return
    first = next((line.lstrip() for _, line in read_lines(file) if line.strip()), "")
    if notes_file(file).is_file():
        with bad_units.caught():
            yield _brat_text(file, left_out)
    elif first.startswith("#FORMAT=WebAnno TSV 3"):
        with bad_units.caught():
            yield _tsv_text(file, columns.get("label"), left_out)
    elif first.startswith(("[", "{")):
        yield from json_texts(file, columns, bad_units, left_out)
    else:
        for number, line in read_lines(file):
            yield AnnotatedText(line, (), (), UNFINISHED, number=number, tool="plain text")


def _brat_text(path: Path, left_out: Counter[str]) -> AnnotatedText:
    """A text of brat. Offsets count its line ends as they are."""
    spans, notes = list[TextSpan](), notes_file(path)
    with open_binary(path) as stream:
        try:
            text = stream.read().decode()
        except UnicodeDecodeError as error:
            raise DataError(path, f"{error}; expected UTF-8 text") from None
    for number, line in read_lines(notes):
        if not line.startswith("T"):
            left_out[_BRAT_KINDS.get(line[:1], "note(s)")] += bool(line)
        elif found := _BRAT_SPAN.fullmatch(line):
            ends = [int(each) for each in re.split("[ ;]", found["pieces"])]
            gaps = [text[end:start] for end, start in zip(ends[1:-1:2], ends[2::2], strict=True)]
            fault = f"is in pieces, {found['pieces']}" if any(gap.strip() for gap in gaps) else ""
            spans.append(TextSpan(ends[0], ends[-1], found["label"], found["text"], fault, f"{notes}:{number}"))
        else:
            raise DataError(notes, f"{line[:80]!r}; expected T1, LABEL START END, and the text, with tabs", number)
    return AnnotatedText(text, spans, (), tool="brat", record=path)


def _tsv_text(path: Path, chosen: str | None, left_out: Counter[str]) -> AnnotatedText:
    """The text of a TSV file, with its own sentences and tokens."""
    lines = [(number, line) for number, line in read_lines(path)]
    rows = [(number, line.split("\t")) for number, line in lines if line[:1].isdigit()]
    column = _tsv_column([line for _, line in lines if line.startswith("#T_")], chosen, path, left_out)
    words = [cells for _, cells in rows if "." not in cells[0]]  # others are parts of a token
    sentences = itertools.groupby(words, key=lambda cells: cells[0].partition("-")[0])
    text, places = text_of_sentences([[cells[2] for cells in group] for _, group in sentences])
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
                spans[key] = TextSpan(start, end, label, location=f"{path}:{number}")
    return AnnotatedText(text, list(spans.values()), (), sentences=places, tool="INCEpTION or WebAnno")


def _tsv_column(layers: Sequence[str], chosen: str | None, path: Path, left_out: Counter[str]) -> int:
    """The column of a feature of the chosen layer; by default that of named entities, or the only layer."""
    left_out["other layer(s)"] += len(layers) - 1
    columns: dict[str, int] = {}  # of `LAYER.FEATURE` and, for its value or else its first feature, of `LAYER`
    number = itertools.count(3)
    for layer in layers:
        kind, _, described = layer.partition("=")
        name, *features = described.split("|")
        name = name.rpartition(".")[2]
        for feature in features:
            index = next(number)
            if kind == "#T_SP":
                columns[f"{name}.{feature}"] = index
                columns[name] = index if feature == "value" else columns.get(name, index)
    names = [name for name in columns if "." not in name]
    chosen = chosen or (names[0] if len(names) == 1 else "NamedEntity")
    if chosen not in columns:
        expected = f"expected {chosen!r}, or another in the reader's columns, {{label: 'LAYER'}}"
        raise DataError(path, f"the layers and features of spans are {', '.join(columns) or 'missing'}; {expected}")
    return columns[chosen]


def _docbin_texts(path: Path) -> Iterator[AnnotatedText]:
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError:
        raise ElmoTasksError(f"{path}: needs spaCy; install it with: pip install 'elmo-tasks[spacy]'") from None
    with open_binary(path) as stream:
        try:
            documents = list(DocBin().from_bytes(stream.read()).get_docs(Vocab()))
        except (ValueError, zlib.error) as error:
            raise DataError(path, f"not a file of spaCy's DocBin ({error})") from None
    for number, doc in enumerate(documents, start=1):
        spans = [TextSpan(each.start_char, each.end_char, each.label_, each.text) for each in doc.ents]
        labels = [label for label, value in doc.cats.items() if value >= 0.5]
        yield AnnotatedText(doc.text, spans, labels, number=number, tool="spaCy", record=doc)
