"""Exports of annotation tools: the sentences of texts with character spans as tags, or whole texts with labels."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from elmo_tasks.data_readers.columns import DOCUMENT_BORDER
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.records import UNLABELLED, Record, read_label
from elmo_tasks.data_readers.rows import ROW_TASKS, RowReader, RowReaderConfig
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.annotation.annotation_tools import AnnotatedText, Export, TextSpan
from elmo_tasks.files.cache import content_hash
from elmo_tasks.files.paths import stored_file
from elmo_tasks.tasks import Tagging, Task
from elmo_tasks.tasks.reading import Passage
from elmo_tasks.text.tag_schemes import OUTSIDE, Span, tags_of_spans
from elmo_tasks.text.tokenizers import WhitespaceTokenizer

logger = logging.getLogger(__name__)

Unit = Literal["characters", "utf-16", "utf-8"]
_REMEDIES = "; on_error can be 'widen' (to whole tokens), 'drop' (the span) or 'skip' (the text)"


class SpansConfig(RowReaderConfig):
    """Exports of doccano, Label Studio, Prodigy, spaCy, brat, INCEpTION, WebAnno (TSV 3) and GLiNER."""

    type: Literal["spans"] = "spans"
    task_name: Literal["tagging", "classification", "multi_label"] = Field(
        "tagging", alias="task", description="What to learn: the spans, or the label or labels of whole texts."
    )
    columns: Mapping[Literal["text", "label"], str] = Field(  # type: ignore[assignment]
        {},
        description="The keys of the text and of its annotations if they are not the usual ones of the tool. In Label "
        "Studio, 'label' is the name of the control; in TSV files, it is the layer, or LAYER.FEATURE.",
    )
    offsets: Unit = Field(
        "characters",
        description="What the tool counts: Unicode characters, UTF-16 units as JavaScript and Java do, or bytes.",
    )
    on_error: Literal["fail", "skip", "drop", "widen"] = Field(  # type: ignore[assignment]
        "fail",
        description="What happens with a span that is not one of whole tokens, or overlaps another: 'fail' ends with "
        "an error; 'skip' leaves the text out, 'drop' the span; 'widen' takes whole tokens, or drops the span.",
    )

    def row_columns(self) -> dict[str, str | int]:
        return ROW_TASKS[self.task_name].columns({})

    @property
    def task(self) -> Task:
        return Tagging(self.tag_scheme or "BIOUL") if self.task_name == "tagging" else super().task

    def build(self) -> SpansReader:
        return SpansReader(self)


class SpansReader(RowReader):
    """Splits texts into sentences and tokens, unless the tool has tokens of its own. Spans become tags.

    Sentences that a span crosses are joined. A tool that counts something other than `offsets` is an `ElmoTasksError`.
    """

    version = 1
    config: SpansConfig
    hub_examples = DatasetReader.hub_examples

    def files(self, path: Path) -> Sequence[Path]:
        """A file; or those of a folder, the texts of brat or else the TSV files."""
        path = stored_file(path)
        found = sorted(path.rglob("*.txt")) or sorted(path.rglob("*.tsv"))
        return found or super().files(stored_file(path.with_suffix(".txt")) if path.suffix == ".ann" else path)

    def file_key(self, path: Path, parsing: Parsing) -> list[str]:
        notes = (text.with_suffix(".ann") for text in self.files(path))
        return [*super().file_key(path, parsing), *(content_hash(file) for file in notes if file.is_file())]

    def texts(self, path: Path, parsing: Parsing) -> Iterator[AnnotatedText]:
        """The texts of a file or folder, with their annotations as the tool has them. The log names the tool."""
        tools = {""}
        for number, file in enumerate(self.files(path)):
            parsing.found["file"] = number
            for text in Export(file, self.config.columns, parsing).texts():
                if text.tool not in tools:
                    logger.info("%s: read as an export of %s", path, text.tool)
                    tools.add(text.tool)
                yield text

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        for example in super().examples(path, parsing):
            yield {**example, "file": parsing.found["file"], "line": example["line"] or None}

    def records(self, path: Path, parsing: Parsing) -> Iterator[Record]:
        task = self.config.task_name
        for text in self.texts(path, parsing):
            sentences = list((WhitespaceTokenizer() if text.is_tokenized else self.tokenizer).spans(text.text))
            missing = text.missing or (UNLABELLED if task == "classification" and not text.labels else "")
            if not sentences or (missing and parsing.needs_labels):
                parsing.left_out[missing if sentences else "text(s) without a token"] += 1
                continue
            unread = ("label(s) of whole texts", text.labels) if task == "tagging" else ("span(s)", text.spans)
            parsing.left_out[unread[0]] += len(unread[1])
            with parsing.caught():
                if task == "tagging":
                    yield from self._tagged(text, sentences, parsing)
                else:
                    label = text.labels[0] if len(text.labels) == 1 else text.labels
                    yield Record({"text": text.text, "label": label, "labels": text.labels}, text.number, text.location)

    def _tagged(
        self, text: AnnotatedText, sentences: Sequence[list[tuple[int, int]]], parsing: Parsing
    ) -> list[Record]:
        """The rows of a text's sentences, after the border of a document."""
        tokens = list(itertools.chain.from_iterable(sentences))
        spans = self._whole_tokens(text, tokens, parsing) if parsing.needs_labels else []
        crossed = {token for span in spans for token in range(span.start + 1, span.end + 1)}
        borders = [token for token in itertools.accumulate(map(len, sentences), initial=0) if token not in crossed]
        rows = [{"tokens": [DOCUMENT_BORDER], "tags": [OUTSIDE]}]
        tags = tags_of_spans(spans, len(tokens), "BIOUL")
        for start, end in itertools.pairwise(borders):
            words = [text.text[first:last] for first, last in tokens[start:end]]
            rows.append({"tokens": words, "tags": tags[start:end]})
        return [Record(row, text.number, text.location) for row in rows]

    def _whole_tokens(self, text: AnnotatedText, tokens: Sequence[tuple[int, int]], parsing: Parsing) -> list[Span]:
        """The spans of a text in tokens. Those that do not fit are treated as `on_error` says."""
        action, found, before, widened = self.config.on_error, list[Span](), "", 0
        places = character_places(text.text, "characters" if text.is_tokenized else self.config.offsets)
        passage = Passage(text.text, *map(list, zip(*tokens, strict=True)))
        for given in sorted(dict.fromkeys(text.spans), key=lambda span: (span.start, -span.end)):
            start, end = places.get(given.start, len(places)), places.get(given.end, 0)  # empty if outside of the text
            first, last = passage.covering_span(start, end)
            name = f"the span {given.start}-{given.end} {text.text[start:end]!r:.80} ({given.label})"
            location = given.location or text.location
            problem = given.fault or self._misread(given, start, end, passage, location)
            if not problem and found and first <= found[-1].end:
                problem = f"overlaps {before}"
            if not problem:
                found.append(Span(read_label(given.label, location), first, last))
                before = name
                widened += (passage.starts[first], passage.ends[last]) != (start, end)
            elif action in ("drop", "widen"):
                parsing.left_out["span(s) that do not fit the tokens"] += 1
            else:
                remedies = _REMEDIES if action == "fail" else ""
                if self.config.offsets == "characters" and max(text.text[: given.end], default="") > "\uffff":
                    remedies += "; or the tool counts UTF-16 units: set offsets: 'utf-16'"
                raise DataError(location, f"{name} {problem}{remedies}")
        if action == "widen" and widened:
            logger.info("%s: %d span(s) widened to whole tokens", text.location, widened)
        return found

    def _misread(self, given: TextSpan, start: int, end: int, passage: Passage, location: str) -> str:
        """What is wrong with a span of these characters; raises an ElmoTasksError if the tool counts other units."""
        text, own, (first, last) = passage.text, _bare(given.own_text or ""), passage.covering_span(start, end)
        if own and own != _bare(text[start:end]):
            for unit in get_args(Unit):
                places = character_places(text, unit)
                if own == _bare(text[places.get(given.start, len(text)) : places.get(given.end, 0)]):
                    found = f"the span {given.start}-{given.end} is {given.own_text!r:.80} in {unit}"
                    expected = f"not in {self.config.offsets}; set offsets: {unit!r}"
                    raise ElmoTasksError(f"{location}: {found}, {expected}")
            return f"is {given.own_text!r:.80} in the tool"
        if start >= end or first > last:
            return f"has no token, in a text of {len(text)} characters"
        begins, ends = passage.starts[first] < start, passage.ends[last] > end
        if self.config.on_error == "widen" or not (begins or ends):
            return ""
        token = first if begins else last
        word = text[passage.starts[token] : passage.ends[token]]
        return f"{'begins' if begins else 'ends'} within the token {word!r}"


def character_places(text: str, unit: Unit) -> dict[int, int]:
    """The positions of the characters of a text and of its end, by the offsets of a tool that counts in a unit."""
    encoding, width = {"characters": ("utf-32-le", 4), "utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1)}[unit]
    offsets = itertools.accumulate((len(each.encode(encoding)) // width for each in text), initial=0)
    return {offset: place for place, offset in enumerate(offsets)}


def _bare(text: str) -> str:
    """A text without white space, which tools change."""
    return "".join(text.replace("\\n", " ").split())
