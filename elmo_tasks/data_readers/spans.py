"""Exports of annotation tools: texts with character spans become sentences with tags, or texts with labels examples."""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import regex
from pydantic import Field

from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.data_readers.annotated_texts import AnnotatedText, TextSpan
from elmo_tasks.data_readers.annotation_files import annotated_texts, notes_file
from elmo_tasks.data_readers.columns import DOCUMENT_BORDER
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.records import UNLABELLED, Record, read_label
from elmo_tasks.data_readers.row_examples import ROW_TASKS
from elmo_tasks.data_readers.rows import RowReader, RowReaderConfig
from elmo_tasks.data_readers.several_sources import without_copies
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.hashes import content_hash
from elmo_tasks.files.paths import is_clutter, plain_name, stored_file
from elmo_tasks.tasks import Tagging, Task
from elmo_tasks.text.tag_schemes import OUTSIDE, Span, TagScheme, tags_of_spans

Unit = Literal["characters", "utf-16", "utf-8", "graphemes"]
DEFAULT_SCHEME: TagScheme = "BIOUL"
_LABELS = "label(s) of whole texts"
_REMEDIES = "; on_error can be 'widen' (to whole tokens), 'drop' (the span) or 'skip' (the text)"


class SpansConfig(RowReaderConfig):
    """Exports of doccano, Label Studio, Prodigy, spaCy, brat, INCEpTION, WebAnno (TSV 3) and GLiNER."""

    type: Literal["spans"] = "spans"
    task_name: Literal["tagging", "classification", "multi_label"] = Field(
        "tagging", alias="task", description="What to learn: the spans, or the label or labels of whole texts."
    )
    columns: Mapping[Literal["text", "label"], str] = Field(
        {},
        description="The keys of the text and of its annotations if they are not the usual ones: in Label Studio 'label' "
        "is the name of the control, in TSV files the layer, or LAYER.FEATURE.",
    )
    offsets: Unit = Field(
        "characters",
        description="What the tool counts: Unicode characters, UTF-16 units as JavaScript and Java do, bytes of UTF-8, "
        "or grapheme clusters, an option of doccano.",
    )
    on_error: Annotated[  # type: ignore[assignment]
        Literal["fail", "skip", "drop", "widen"],
        Field(
            description="What happens with a span that begins or ends within a token, overlaps another, is empty or "
            "lies outside of its text. 'fail' ends with an error; 'skip' leaves the text out; 'drop' leaves the span "
            "out; 'widen' takes the whole tokens, or leaves the span out if that does not help."
        ),
    ] = "fail"

    def row_columns(self) -> dict[str, str | int]:
        return ROW_TASKS[self.task_name].columns({})

    def own_columns(self) -> Mapping[str, str]:
        return {self.columns["text"]: "text"} if "text" in self.columns else {}

    @property
    def task(self) -> Task:
        return Tagging(self.tag_scheme or DEFAULT_SCHEME) if self.task_name == "tagging" else super().task

    def build(self) -> SpansReader:
        return SpansReader(self)


class SpansReader(RowReader):
    """Makes examples of the sentences of texts, which the tokenizer splits unless the tool has tokens of its own.

    Spans become the tags of their tokens. Sentences that a span crosses are joined.

    Raises (from `read`):
        DataError: the files are not those of a tool, or a span is wrong, see `on_error`; file, line, span and tokens
            are named.
        ElmoTasksError: the tool counts something other than `offsets`.
    """

    version = 1
    config: SpansConfig
    hub_examples = DatasetReader.hub_examples

    def __init__(self, config: SpansConfig) -> None:
        super().__init__(config)
        self._changed: dict[str, list[str]] = defaultdict(list)  # the spans that `on_error` changes, by what it does
        self._file = 0

    def files(self, path: Path) -> Sequence[Path]:
        """A file; or those of a folder, the texts of brat or else the TSV files."""
        if (file := stored_file(path)).suffix == ".ann":
            file = stored_file(file.with_suffix(".txt"))
        if not file.is_dir():
            return super().files(file)
        inner = [each for each in file.rglob("*") if each.is_file() and not is_clutter(each.relative_to(file))]
        for ending in (".txt", ".tsv"):
            if found := without_copies(each for each in inner if plain_name(each).endswith(ending)):
                return found
        raise MissingDataError(path, "the folder has no .txt of brat and no .tsv of INCEpTION or WebAnno")

    def file_key(self, path: Path) -> list[str]:
        return [content_hash(file) for text in self.files(path) for file in (text, notes_file(text)) if file.is_file()]

    def texts(self, path: Path) -> Iterator[AnnotatedText]:
        """The texts of a file or folder, with their annotations as the tool has them."""
        return annotated_texts(self.files(path), self.config.columns, self.bad_units, self.left_out)

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        self._changed.clear()
        for example in super().examples(path):
            yield {**example, "file": self._file}

    def records(self, path: Path) -> Iterator[Record]:
        is_tagging, num_spans = self.config.task_name == "tagging", 0
        for text in self.texts(path):
            self._file, num_spans = text.file, num_spans + len(text.spans)
            sentences = list(self.tokenizer.spans(text.text) if text.sentences is None else text.sentences)
            if (text.missing and self.needs_labels) or not sentences:
                self.left_out[text.missing or "text(s) without a token"] += 1
                continue
            self.left_out[_LABELS if is_tagging else "span(s)"] += len(text.labels if is_tagging else text.spans)
            with self.bad_units.caught():
                yield from self._tagged(text, sentences) if is_tagging else self._labelled(text)
        if is_tagging and self.left_out[_LABELS] and not num_spans:
            problem = "has labels of whole texts and no spans"
            raise DataError(path, f"{problem}; set the reader's task to 'classification' or 'multi_label'")

    def _suspicions(
        self, first: Mapping[str, Any], long: Sequence[tuple[Mapping[str, Any], int, int]], source: str | Path
    ) -> Iterator[str]:
        yield from super()._suspicions(first, long, source)
        for what, problems in self._changed.items():
            yield f"{source}: {len(problems)} span(s) {what}; the first is in {problems[0]}"

    def _labelled(self, text: AnnotatedText) -> list[Record]:
        """The row of a text with its label or labels."""
        labels = list(dict.fromkeys(read_label(label, text.location) for label in text.labels))
        if self.config.task_name == "classification" and self.needs_labels and len(labels) != 1:
            if not labels:
                self.left_out[UNLABELLED] += 1
                return []
            problem = f"the labels are {', '.join(labels)}; expected only one"
            raise DataError(text.location, f"{problem}, or 'multi_label' as the reader's task")
        return [Record({"text": text.text, "label": "".join(labels[:1]), "labels": labels}, text.number, text.location)]

    def _tagged(self, text: AnnotatedText, sentences: Sequence[list[tuple[int, int]]]) -> list[Record]:
        """The rows of a text's sentences, after the border of a document."""
        tokens = list(itertools.chain.from_iterable(sentences))
        spans = self._whole_tokens(text, tokens) if self.needs_labels else []
        crossed = {token for span in spans for token in range(span.start + 1, span.end + 1)}
        borders = [token for token in itertools.accumulate(map(len, sentences), initial=0) if token not in crossed]
        self.left_out["border(s) of sentences within spans"] += len(sentences) + 1 - len(borders)
        rows = [{"tokens": [DOCUMENT_BORDER], "tags": [OUTSIDE]}]
        for start, end in itertools.pairwise(borders):
            own = [Span(label, first - start, last - start) for label, first, last in spans if start <= first < end]
            tags = tags_of_spans(own, end - start, self.config.tag_scheme or DEFAULT_SCHEME)
            rows.append({"tokens": [text.text[first:last] for first, last in tokens[start:end]], "tags": tags})
        return [Record(row, text.number, text.location) for row in rows]

    def _whole_tokens(self, text: AnnotatedText, tokens: Sequence[tuple[int, int]]) -> list[Span]:
        """The spans of a text in tokens. Those that do not fit are treated as `on_error` says."""
        action = self.config.on_error
        found: list[tuple[Span | None, str]] = []
        for given in sorted(text.spans, key=lambda span: (span.start, -span.end)):
            span, cut, problem = self._fitted(given, text, tokens)
            name = f"the span {given.start}-{given.end} {cut!r:.80} ({given.label})"
            location = given.location or text.location
            if span and problem and action == "widen":
                self._changed["widened to whole tokens"].append(f"{location}: {name} {problem}")
                problem = ""
            before = found[-1] if found else (None, "")
            if not problem and span == before[0]:
                self.left_out["span(s) that are there twice"] += 1
            elif not problem and span and before[0] and span.start <= before[0].end:
                problem = f"overlaps {before[1]}"
            elif not problem:
                found.append((span, name))
            if problem and action in ("drop", "widen"):
                self._changed["left out"].append(f"{location}: {name} {problem}")
            elif problem:
                raise DataError(location, f"{name} {problem}{_REMEDIES if action == 'fail' else ''}")
        return [span for span, _ in found if span]

    def _fitted(
        self, given: TextSpan, text: AnnotatedText, tokens: Sequence[tuple[int, int]]
    ) -> tuple[Span | None, str, str]:
        """The tokens that a span touches, what it is in the text, and what is wrong with it."""
        unit: Unit = self.config.offsets if text.sentences is None else "characters"
        start, end = _cut(given, text.text, unit)
        cut = text.text[start:end]
        if given.own_text and _bare(given.own_text) != _bare(cut):
            for other in get_args(Unit):
                if _bare(given.own_text) == _bare(text.text[slice(*_cut(given, text.text, other))]):
                    problem = f"the span {given.start}-{given.end} is {given.own_text!r:.80} in {other}, not in {unit}"
                    raise ElmoTasksError(f"{given.location or text.location}: {problem}; set offsets: {other!r}")
            return None, cut, f"is {given.own_text!r:.80} in the tool"
        if given.fault or start >= end:
            outside = f"is empty, or outside of its text of {len(text.text)} characters"
            return None, cut, given.fault or outside
        first = bisect.bisect_right(tokens, start, key=lambda token: token[1])
        last = bisect.bisect_left(tokens, end, key=lambda token: token[0]) - 1
        if first > last:
            return None, cut, "has no token"
        span = Span(read_label(given.label, text.location), first, last)
        words = [text.text[slice(*tokens[token])] for token in (first, last)]
        if tokens[first][0] < start:
            return span, cut, f"begins within the token {words[0]!r}"
        return span, cut, f"ends within the token {words[1]!r}" if tokens[last][1] > end else ""


def character_places(text: str, unit: Unit) -> dict[int, int]:
    """The positions of the characters of a text and of its end, by the offsets of a tool that counts in a unit."""
    pieces = regex.findall(r"\X", text) if unit == "graphemes" else text
    sizes = {"utf-16": lambda piece: len(piece.encode("utf-16-le")) // 2, "utf-8": lambda piece: len(piece.encode())}
    offsets = itertools.accumulate(map(sizes.get(unit, lambda piece: 1), pieces), initial=0)
    return dict(zip(offsets, itertools.accumulate(map(len, pieces), initial=0), strict=True))


def _cut(span: TextSpan, text: str, unit: Unit) -> tuple[int, int]:
    """Where a span begins and ends in a text, in characters; (0, 0) if it is not within the text."""
    places = character_places(text, unit)
    return (places[span.start], places[span.end]) if {span.start, span.end} <= places.keys() else (0, 0)


def _bare(text: str) -> str:
    """A text without white space, which tools change."""
    return "".join(text.replace("\\n", " ").split())
