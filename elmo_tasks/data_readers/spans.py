"""Exports of annotation tools: the sentences of texts with character spans as tags, or whole texts with labels."""

from __future__ import annotations

import bisect
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import regex
from pydantic import Field

from elmo_tasks.data_readers.annotation_tools import AnnotatedText, Export, TextSpan, notes_file
from elmo_tasks.data_readers.columns import DOCUMENT_BORDER
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.records import UNLABELLED, Record, read_label
from elmo_tasks.data_readers.row_examples import ROW_TASKS
from elmo_tasks.data_readers.rows import RowReader, RowReaderConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.hashes import content_hash
from elmo_tasks.files.paths import stored_file
from elmo_tasks.tasks import Tagging, Task
from elmo_tasks.text.tag_schemes import OUTSIDE, Span, tags_of_spans

logger = logging.getLogger(__name__)

Unit = Literal["characters", "utf-16", "utf-8", "graphemes"]
_REMEDIES = "; on_error can be 'widen' (to whole tokens), 'drop' (the span) or 'skip' (the text)"


class SpansConfig(RowReaderConfig):
    """Exports of doccano, Label Studio, Prodigy, spaCy, brat, INCEpTION, WebAnno (TSV 3) and GLiNER."""

    type: Literal["spans"] = "spans"
    task_name: Literal["tagging", "classification", "multi_label"] = Field(
        "tagging", alias="task", description="What to learn: the spans, or the label or labels of whole texts."
    )
    columns: Mapping[str, str] = Field(
        {},
        description="The keys of the text and of its annotations if they are not the usual ones of the tool. In Label "
        "Studio, 'label' is the name of the control; in TSV files, it is the layer, or LAYER.FEATURE.",
    )
    offsets: Unit = Field(
        "characters",
        description="What the tool counts: Unicode characters, UTF-16 units as JavaScript and Java do, bytes of UTF-8, "
        "or grapheme clusters, an option of doccano.",
    )
    on_error: Annotated[
        Literal["fail", "skip", "drop", "widen"],
        Field(
            description="What happens with a span that begins or ends within a token, overlaps another, is empty or "
            "lies outside of its text: 'fail' ends with an error; 'skip' leaves the text out; 'drop' leaves the span "
            "out; 'widen' takes whole tokens, or leaves the span out if that does not help."
        ),
    ] = "fail"  # type: ignore[assignment]

    def row_columns(self) -> dict[str, str | int]:
        if unknown := self.columns.keys() - {"text", "label"}:
            raise ValueError(f"columns: {', '.join(unknown)}; expected text, label")
        return ROW_TASKS[self.task_name].columns({})

    @property
    def task(self) -> Task:
        return Tagging(self.tag_scheme or "BIOUL") if self.task_name == "tagging" else super().task

    def build(self) -> SpansReader:
        return SpansReader(self)


class SpansReader(RowReader):
    """Splits texts into sentences and tokens, unless the tool has tokens of its own. Spans become tags.

    Sentences that a span crosses are joined.

    Raises (from `read`):
        DataError: a file is not that of a tool, or a span is wrong, see `on_error`; file, line, span and tokens are
            named.
        ElmoTasksError: the tool counts something other than `offsets`.
    """

    version = 1
    config: SpansConfig
    hub_examples = DatasetReader.hub_examples
    _file = _widened = 0  # the number of the file that is read, and of its spans that became longer

    def files(self, path: Path) -> Sequence[Path]:
        """A file; or those of a folder, the texts of brat or else the TSV files."""
        path = stored_file(path)
        found = sorted(path.rglob("*.txt")) or sorted(path.rglob("*.tsv"))
        return found or super().files(stored_file(path.with_suffix(".txt")) if path.suffix == ".ann" else path)

    def file_key(self, path: Path) -> list[str]:
        return [content_hash(file) for text in self.files(path) for file in (text, notes_file(text)) if file.is_file()]

    def texts(self, path: Path) -> Iterator[AnnotatedText]:
        """The texts of a file or folder, with their annotations as the tool has them."""
        tool = ""
        for number, file in enumerate(self.files(path)):
            self._file = number
            for text in Export(file, self.config.columns, self.bad_units, self.left_out).texts():
                if text.tool != tool:
                    tool = text.tool
                    logger.info("%s: the format is that of %s", file, tool)
                yield text

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        for example in super().examples(path):
            yield {**example, "file": self._file}

    def records(self, path: Path) -> Iterator[Record]:
        is_tagging, self._widened = self.config.task_name == "tagging", 0
        for text in self.texts(path):
            sentences = list(self.tokenizer.spans(text.text) if text.sentences is None else text.sentences)
            missing = text.missing if self.needs_labels else ""
            if self.config.task_name == "classification" and self.needs_labels and not text.labels:
                missing = missing or UNLABELLED
            if missing or not sentences:
                self.left_out[missing or "text(s) without a token"] += 1
                continue
            unread = {"label(s) of whole texts": text.labels} if is_tagging else {"span(s)": text.spans}
            self.left_out.update({what: len(each) for what, each in unread.items()})
            with self.bad_units.caught():
                if is_tagging:
                    yield from self._tagged(text, sentences)
                    continue
                label = text.labels[0] if len(text.labels) == 1 else text.labels
                row = {"text": text.text, "label": label, "labels": text.labels}
                yield Record(row, text.number, text.location)
        if self._widened:
            logger.info("%s: %d span(s) widened to whole tokens", path, self._widened)

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
            tags = tags_of_spans(own, end - start, self.config.tag_scheme or "BIOUL")
            rows.append({"tokens": [text.text[first:last] for first, last in tokens[start:end]], "tags": tags})
        return [Record(row, text.number, text.location) for row in rows]

    def _whole_tokens(self, text: AnnotatedText, tokens: Sequence[tuple[int, int]]) -> list[Span]:
        """The spans of a text in tokens. Those that do not fit are treated as `on_error` says."""
        action, found = self.config.on_error, list[tuple[Span, str]]()
        places = character_places(text.text, self.config.offsets if text.sentences is None else "characters")
        for given in sorted(dict.fromkeys(text.spans), key=lambda span: (span.start, -span.end)):
            start, end = _within(given, places)
            span, problem = self._fitted(given, start, end, text, tokens)
            name = f"the span {given.start}-{given.end} {text.text[start:end]!r:.80} ({given.label})"
            if span and problem and action == "widen":
                self._widened, problem = self._widened + 1, ""
            if span and not problem and found and span.start <= found[-1][0].end:
                problem = f"overlaps {found[-1][1]}"
            if not problem:
                found += [(span, name)] if span else []
            elif action in ("drop", "widen"):
                self.left_out["span(s) that do not fit the tokens"] += 1
            else:
                location, remedies = given.location or text.location, _REMEDIES if action == "fail" else ""
                if self.config.offsets == "characters" and max(text.text[: given.end], default="") > "\uffff":
                    remedies += "; or the tool counts UTF-16 units: set offsets: 'utf-16'"
                raise DataError(location, f"{name} {problem}{remedies}")
        return [span for span, _ in found]

    def _fitted(
        self, given: TextSpan, start: int, end: int, text: AnnotatedText, tokens: Sequence[tuple[int, int]]
    ) -> tuple[Span | None, str]:
        """The tokens that a span touches, which begins and ends at these characters, and what is wrong with it."""
        own = _bare(given.own_text or "")
        if own and not given.fault and own != _bare(text.text[start:end]):
            for unit in get_args(Unit):
                if own == _bare(text.text[slice(*_within(given, character_places(text.text, unit)))]):
                    found = f"the span {given.start}-{given.end} is {given.own_text!r:.80} in {unit}"
                    problem = f"{found}, not in {self.config.offsets}; set offsets: {unit!r}"
                    raise ElmoTasksError(f"{given.location or text.location}: {problem}")
            return None, f"is {given.own_text!r:.80} in the tool"
        first = bisect.bisect_right(tokens, start, key=lambda token: token[1])
        last = bisect.bisect_left(tokens, end, key=lambda token: token[0]) - 1
        if given.fault or start >= end or first > last:
            return None, given.fault or f"has no token, in a text of {len(text.text)} characters"
        span = Span(read_label(given.label, text.location), first, last)
        if tokens[first][0] < start:
            return span, f"begins within the token {text.text[slice(*tokens[first])]!r}"
        return span, f"ends within the token {text.text[slice(*tokens[last])]!r}" if tokens[last][1] > end else ""


def character_places(text: str, unit: Unit) -> dict[int, int]:
    """The positions of the characters of a text and of its end, by the offsets of a tool that counts in a unit."""
    pieces = regex.findall(r"\X", text) if unit == "graphemes" else text
    encoding, width = {"utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1)}.get(unit, ("", 0))
    sizes = (len(piece.encode(encoding)) // width if width else 1 for piece in pieces)
    offsets = itertools.accumulate(sizes, initial=0)
    return dict(zip(offsets, itertools.accumulate(map(len, pieces), initial=0), strict=True))


def _within(span: TextSpan, places: Mapping[int, int]) -> tuple[int, int]:
    """Where a span begins and ends, in characters; (0, 0) if it is not within the text."""
    return (places[span.start], places[span.end]) if {span.start, span.end} <= places.keys() else (0, 0)


def _bare(text: str) -> str:
    """A text without white space, which tools change."""
    return "".join(text.replace("\\n", " ").split())
