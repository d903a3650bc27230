"""Exports of annotation tools: the sentences of texts with character spans as tags, or whole texts with labels."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import zipfile
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
from elmo_tasks.extras.annotation.annotation_tools import (
    BREAK,
    PARTIAL,
    REJECTED,
    TASK_KEYS,
    AnnotatedText,
    Export,
    TextSpan,
    leave_out,
)
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.cache import content_hash, used_cache
from elmo_tasks.files.limits import ADVICE, unpacked_text
from elmo_tasks.files.paths import JSON_LINES, is_clutter, plain_name, stored_file
from elmo_tasks.files.text import ZIP_ERRORS
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
    annotator: str | int | None = Field(
        None,
        description="Whose annotations are read: a name or number in the export, or the name of a file without its "
        "ending. By default, all annotations of a text must be the same, or one is marked as the right one.",
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

    version = 2
    config: SpansConfig
    hub_examples = DatasetReader.hub_examples

    def files(self, path: Path) -> Sequence[Path]:
        """A file; or those of a folder or an archive: the texts of brat, or else tables, JSON or text."""
        path = stored_file(path)
        if path.suffix == ".zip" and path.is_file():
            path = _unpacked(path)
        if not path.is_dir():
            return super().files(stored_file(path.with_suffix(".txt")) if path.suffix == ".ann" else path)
        found = [file for file in sorted(path.rglob("*")) if file.is_file() and not is_clutter(file.relative_to(path))]
        is_brat = any(file.suffix == ".ann" for file in found)
        for endings in ((".txt",) if is_brat else (), (".tsv", ".csv"), JSON_LINES, (".txt",)):
            if chosen := [file for file in found if plain_name(file).endswith(endings)]:
                return [file for file in chosen if file.stem != "INITIAL_CAS"]  # nobody's annotations, of INCEpTION
        raise DataError(path, "the folder has no text with .ann, and no .tsv, .csv, JSON or text")

    def file_key(self, path: Path, parsing: Parsing) -> list[str]:
        notes = (text.with_suffix(".ann") for text in self.files(path))
        return [*super().file_key(path, parsing), *(content_hash(file) for file in notes if file.is_file())]

    def texts(self, path: Path, parsing: Parsing) -> Iterator[AnnotatedText]:
        """The texts of a file or folder, with their annotations as the tool has them. The log names the tool.

        A text that several people have annotated comes several times, if labels are needed; otherwise once.
        """
        tools, files, known = {""}, self.files(path), dict[Any, dict[str, int]]()
        # doccano, and projects of INCEpTION, have a file for each annotator
        are_persons = len(files) > 1 and not plain_name(files[0]).endswith(".txt")
        for number, file in enumerate(files):
            parsing.found["file"] = number
            person = file.stem if are_persons else ""
            for text in Export(file, self.config.columns, parsing, self.config.task_name, person).texts():
                if text.tool not in tools:
                    logger.info("%s: read as an export of %s", path, text.tool)
                    tools.add(text.tool)
                if parsing.needs_labels or _is_new(text, known):
                    yield text

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        for example in super().examples(path, parsing):
            yield {**example, "file": parsing.found["file"], "line": example["line"] or None}

    def records(self, path: Path, parsing: Parsing) -> Iterator[Record]:
        task = self.config.task_name
        for text in self._settled(path, parsing) if parsing.needs_labels else self.texts(path, parsing):
            sentences = list((WhitespaceTokenizer() if text.is_tokenized else self.tokenizer).spans(text.text))
            missing = text.missing or (UNLABELLED if task == "classification" and not text.labels else "")
            if not sentences or (missing and parsing.needs_labels):
                leave_out(parsing, missing if sentences else "text(s) without a token", text.location)
                continue
            unread = ("label(s) of whole texts", text.labels) if task == "tagging" else ("span(s)", text.spans)
            leave_out(parsing, unread[0], text.location, len(unread[1]))
            with parsing.caught():
                if task == "tagging":
                    yield from self._tagged(text, sentences, parsing)
                else:
                    label = text.labels[0] if len(text.labels) == 1 else text.labels
                    gold = {"label": label, "labels": text.labels} if parsing.needs_labels else self._others(text)
                    yield Record({**gold, "text": text.text}, text.number, text.location)

    def _others(self, text: AnnotatedText) -> dict[str, Any]:
        """What the item of a text has in addition to the text and its annotations."""
        others, data = dict(text.fields), text.fields.get("data")
        if text.tool == "Label Studio" and isinstance(data, dict):
            own = {key: data[key] for key in data if key != self.config.columns.get("text", "text")}
            others = {key: others[key] for key in others if key not in TASK_KEYS} | ({"data": own} if own else {})
        return others

    def _settled(self, path: Path, parsing: Parsing) -> Iterator[AnnotatedText]:
        """The texts; of several annotations of one, all but one are missing. An error names two that differ."""
        groups, chosen = dict[Any, list[tuple[int, AnnotatedText]]](), str(self.config.annotator)
        for number, text in enumerate(self.texts(path, parsing)):
            groups.setdefault(text.document or number, []).append((parsing.found["file"], text))
        for group in groups.values():
            parsing.found["file"], texts = group[0][0], [text for _, text in group]
            done = [text for text in texts if not text.missing and chosen in ("None", text.annotator)]
            done = [text for text in done if text.is_truth] or done
            rejected = [
                text for text in texts if text.missing == REJECTED and self.config.task_name != "classification"
            ]
            other = next((text for text in done + rejected if done and not self._agree(text, done[0])), None)
            with parsing.caught():
                is_manual = other and not other.missing and "manual" in str(other.fields.get("_view_id"))
                if other and (is_manual or other.tool != "Prodigy" or other.annotator != done[0].annotator):
                    people = dict.fromkeys(repr(text.annotator) for text in done)
                    remedy = "keep one of them" if len(people) == 1 else f"set annotator to one of {', '.join(people)}"
                    raise DataError(other.location, f"the text has other annotations at {done[0].location}; {remedy}")
                for text in texts:
                    if not text.missing and (other or text is not next(iter(done), None)):
                        who = f"annotator {text.annotator}" if text.annotator else "others"
                        missing = PARTIAL if other else f"annotation(s) of {who}"
                        text = dataclasses.replace(text, missing=missing)
                    yield text

    def _agree(self, one: AnnotatedText, other: AnnotatedText) -> bool:
        """Whether two annotations of a text are the same for the task."""
        if self.config.task_name == "tagging":
            return {span[:3] for span in one.spans} == {span[:3] for span in other.spans}
        return set(map(str, one.labels)) == set(map(str, other.labels))

    def _tagged(
        self, text: AnnotatedText, sentences: Sequence[list[tuple[int, int]]], parsing: Parsing
    ) -> list[Record]:
        """The rows of a text's sentences, after the border of a document."""
        tokens = list(itertools.chain.from_iterable(sentences))
        spans = self._whole_tokens(text, tokens, parsing) if parsing.needs_labels else []
        crossed = {token for span in spans for token in range(span.start + 1, span.end + 1)}
        borders = [token for token in itertools.accumulate(map(len, sentences), initial=0) if token not in crossed]
        rows: list[dict[str, Any]] = [{"tokens": [DOCUMENT_BORDER], "tags": [OUTSIDE]}]
        tags = tags_of_spans(spans, len(tokens), "BIOUL")
        for start, end in itertools.pairwise(borders):
            words = [text.text[first:last] for first, last in tokens[start:end]]
            others = {"tags": tags[start:end]} if parsing.needs_labels else self._others(text)
            rows.append({**others, "tokens": words})
        return [Record(row, text.number, text.location) for row in rows]

    def _whole_tokens(self, text: AnnotatedText, tokens: Sequence[tuple[int, int]], parsing: Parsing) -> list[Span]:
        """The spans of a text in tokens. Those that do not fit are treated as `on_error` says."""
        action, found, before = self.config.on_error, list[Span](), ""
        unit = "characters" if text.is_tokenized else self.config.offsets
        places = character_places(text.text, unit, is_html=text.is_html)
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
                whole = text.text[passage.starts[first] : passage.ends[last]]
                if action == "widen" and whole != text.text[start:end].strip():
                    what = f"span(s) widened to whole tokens (first: {location}, {text.text[start:end]!r} to {whole!r})"
                    parsing.changed[parsing.found.setdefault("widened", what)] += 1
            elif action in ("drop", "widen"):
                leave_out(parsing, "span(s) that do not fit the tokens", location)
            else:
                remedies = _REMEDIES if action == "fail" else ""
                if self.config.offsets == "characters" and max(text.text[: given.end], default="") > "\uffff":
                    remedies += "; or the tool counts UTF-16 units: set offsets: 'utf-16'"
                raise DataError(location, f"{name} {problem}{remedies}")
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


def _is_new(text: AnnotatedText, known: dict[Any, dict[str, int]]) -> bool:
    """Whether a text is not known yet, for example from another annotator. Then it is added to the known ones.

    Texts with the same id, or hash of Prodigy, are one. Without an id, those of one annotator are several.
    """
    own = text.fields.get("id", text.fields.get("_input_hash"))
    item: tuple[Any, ...] = (str(text.document or text.location), str(own))
    if own is None:
        places = known.setdefault((item, text.annotator), {})
        item = (*item, places.setdefault(text.location, len(places)))
    is_new = item not in known
    known.setdefault(item, {})
    return is_new


def _unpacked(path: Path) -> Path:
    """The folder in the cache with the files of a zip archive; the archive itself if it has only one."""
    folder = used_cache("archives") / content_hash(path) / path.stem
    try:
        with zipfile.ZipFile(path) as archive:
            files = [file for file in archive.infolist() if not (file.is_dir() or is_clutter(file.filename))]
            if sum(file.file_size for file in files) > unpacked_text(path.stat().st_size):
                raise DataError(path, f"the archive is far larger inside; {ADVICE}")
            if len(files) > 1 and not folder.is_dir():
                with atomic_folder(folder) as temporary:
                    archive.extractall(temporary, files)
    except ZIP_ERRORS as error:
        raise DataError(path, f"the archive is damaged or cut short ({error})") from None
    return folder if len(files) > 1 else path


def character_places(text: str, unit: Unit, *, is_html: bool = False) -> dict[int, int]:
    """The positions of the characters of a text and of its end, by the offsets of a tool that counts in a unit."""
    encoding, width = {"characters": ("utf-32-le", 4), "utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1)}[unit]
    sizes = (0 if is_html and each == BREAK else len(each.encode(encoding)) // width for each in text)
    offsets = itertools.accumulate(sizes, initial=0)
    return {offset: place for place, offset in enumerate(offsets)}


def _bare(text: str) -> str:
    """A text without white space, which tools change."""
    return "".join(text.replace("\\n", " ").split())
