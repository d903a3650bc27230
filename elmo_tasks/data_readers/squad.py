"""SQuAD v1.1: questions about a passage, answered by a piece of it; articles, paragraphs and questions in one JSON.

Source: Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text". The file's layout:

    {"data": [{"paragraphs": [{"context": str, "qas": [{"id": str, "question": str,
                                                        "answers": [{"text": str, "answer_start": int}]}]}]}]}

`answer_start` counts characters (code points) of `context`, which is called the passage here, as models call it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import datasets
from pydantic import Field

from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files import parse_json, read_lines
from elmo_tasks.tasks import Reading, Task
from elmo_tasks.tasks.reading import Passage, question_columns
from elmo_tasks.text import tokenization

logger = logging.getLogger(__name__)

_HUB_COLUMNS = ("id", "question", "context", "answers")
_NAMED_IDS = 5  # so many questions are named where many share a trait
_JSON_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "a whole number",
    float: "a fraction",
    bool: "true or false",
    type(None): "null",
}

_ValueT = TypeVar("_ValueT")


class SquadConfig(DatasetReaderConfig):
    """Files in the format of SQuAD v1.1, or hub data sets with its columns."""

    type: Literal["squad"] = "squad"
    task: ClassVar[Task] = Reading()
    share: Annotated[
        float,
        Field(gt=0, le=1, description="of the passages, with their questions, evenly spread over what is read"),
    ] = 1.0

    def build(self) -> SquadReader:
        return SquadReader(self)


class SquadReader(DatasetReader):
    """Makes an example of `Reading` of every question, in the order of the file.

    An answer that begins or ends within a token gets the smallest span of tokens that covers it; such answers are
    counted and reported in the log. They are 1 % in the development data, half of them a part of a hyphenated word,
    which is one token here as it is for the biLM. The place of an answer is the one that the file names, even if its
    text occurs elsewhere in the passage too.

    With a `share` below 1 the other passages and their questions are left out, unseen.

    Raises (from `read`):
        DataError: no JSON, or not of the layout above; an answer that is not in the passage at the place given; an id
            that two questions have. The place in the file and the question's id are named.
        ElmoTasksError: likewise for a hub data set; the row is named.
    """

    version: ClassVar[int] = 1

    config: SquadConfig

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        builder, share = _ExampleBuilder(), _Share(self.config.share)
        try:
            for article in _Node(_parse(path), "").items("data"):
                for paragraph in article.items("paragraphs"):
                    if not share.takes_next():
                        continue
                    passage = _located(Passage.of, paragraph.get("context", str), paragraph.place)
                    for node in paragraph.items("qas"):
                        answers = [_Answer.of(answer) for answer in node.items("answers")]
                        question = _Question(node.get("id", str), node.get("question", str), answers, node.place)
                        yield builder.build(question, passage)
        except _FormatError as error:
            raise DataError(path, str(error)) from None
        builder.report(path)

    def hub_examples(self, rows: datasets.Dataset, source: str) -> Iterator[dict[str, Any]]:
        if missing := set(_HUB_COLUMNS) - set(rows.column_names):
            raise ElmoTasksError(
                f"{source}: no column {', '.join(map(repr, sorted(missing)))} among {', '.join(rows.column_names)}; "
                "wanted the columns of SQuAD v1.1"
            )
        builder, share = _ExampleBuilder(), _Share(self.config.share)
        passage = None  # of the row before; the questions about a passage follow one another
        try:
            for number, row in enumerate(rows):
                node = _Node(row, f"row {number}")
                context = node.get("context", str)
                if passage is None or passage.text != context:
                    passage, is_read = _located(Passage.of, context, node.place), share.takes_next()
                if is_read:
                    yield builder.build(_Question.of_hub_row(node), passage)
        except _FormatError as error:
            raise ElmoTasksError(f"{source}: {error}") from None
        builder.report(source)

    def cache_key(self) -> list[Any]:
        return [*super().cache_key(), tokenization.VERSION]


class _FormatError(Exception):
    """Something that does not follow the format, with its place in the source."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")


class _Node(NamedTuple):
    """A value of the source and its place, such as `data[0].paragraphs[2]`; the whole has the place ""."""

    value: Any
    place: str

    def get(self, key: str, kind: type[_ValueT]) -> _ValueT:
        """The member `key` of an object, which must be of the type `kind`."""
        if not isinstance(self.value, dict):
            raise _FormatError(self.place or "the file", f"{_json_name(self.value)}; wanted an object")
        if key not in self.value:
            keys = ", ".join(map(repr, self.value)) or "none"
            raise _FormatError(self.place or "the file", f"no key {key!r}, which SQuAD v1.1 has; its keys: {keys}")
        value = self.value[key]
        if type(value) is not kind:  # True is an int too
            raise _FormatError(self._place_of(key), f"{_json_name(value)}; wanted {_JSON_NAMES[kind]}")
        return value

    def items(self, key: str) -> Iterator[_Node]:
        """The elements of the array under `key`."""
        for number, value in enumerate(self.get(key, list)):
            yield _Node(value, f"{self._place_of(key)}[{number}]")

    def _place_of(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def _json_name(value: Any) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _parse(path: Path) -> Any:
    """The JSON of a file, compressed or not."""
    return parse_json("\n".join(line for _, line in read_lines(path)), path, "JSON")


def _located(make: Callable[[str], _ValueT], text: str, place: str) -> _ValueT:
    """What `make` makes of a text; its errors name the text's place in the source."""
    try:
        return make(text)
    except ElmoTasksError as error:
        raise _FormatError(place, str(error)) from None


class _Answer(NamedTuple):
    """A gold answer as the source has it."""

    text: str
    start: int

    @classmethod
    def of(cls, node: _Node) -> _Answer:
        return cls(node.get("text", str), node.get("answer_start", int))


class _Question(NamedTuple):
    """A question as the source has it, and its place there."""

    id: str
    text: str
    answers: list[_Answer]
    place: str

    @classmethod
    def of_hub_row(cls, node: _Node) -> _Question:
        """A hub data set has the answers' texts and the answers' starts as two lists."""
        columns = _Node(node.get("answers", dict), f"{node.place}.answers")
        texts, starts = columns.get("text", list), columns.get("answer_start", list)
        if len(texts) != len(starts):
            raise _FormatError(columns.place, f"{len(texts)} texts and {len(starts)} starts; wanted as many of each")
        answers = [
            _Answer.of(_Node({"text": text, "answer_start": start}, f"{columns.place}[{number}]"))
            for number, (text, start) in enumerate(zip(texts, starts, strict=True))
        ]
        return cls(node.get("id", str), node.get("question", str), answers, node.place)


class _Share:
    """Takes a share of what comes one by one: the first, and others evenly spread, every tenth for 0.1."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._seen = 0

    def takes_next(self) -> bool:
        before = math.ceil(self._seen * self._share)
        self._seen += 1
        return math.ceil(self._seen * self._share) > before


class _ExampleBuilder:
    """Makes the examples of one source, and keeps count of the answers that tokens do not fit."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._num_answers = 0
        self._misaligned: list[str] = []  # ids of questions, one for every such answer

    def build(self, question: _Question, passage: Passage) -> dict[str, Any]:
        place = f"{question.place} (question {question.id!r})"
        if question.id in self._ids:
            raise _FormatError(place, "an earlier question has the same id; wanted one for each")
        self._ids.add(question.id)
        if not question.answers:
            raise _FormatError(place, "no answer; SQuAD v1.1 has at least one for every question")
        return {
            "id": question.id,
            **_located(question_columns, question.text, place),
            **passage.columns(),
            "answers": [answer.text for answer in question.answers],
            "answer_spans": [
                self._align(answer, passage, question.id, f"{place}, answers[{number}]")
                for number, answer in enumerate(question.answers)
            ],
        }

    def _align(self, answer: _Answer, passage: Passage, question_id: str, place: str) -> tuple[int, int]:
        """The span of tokens for an answer; counts it if it is not that span's very text."""
        text, start, end = answer.text, answer.start, answer.start + len(answer.text)
        if not text.strip():
            raise _FormatError(place, f"the answer {text!r} holds nothing but white space")
        if start < 0 or passage.text[start:end] != text:
            found = repr(passage.text[start:end][:80]) if 0 <= start < len(passage.text) else "nothing"
            passage_length = f"the passage of {len(passage.text)} characters"
            raise _FormatError(place, f"the answer {text[:80]!r} is not at {start}, where {passage_length} has {found}")
        first, last = passage.covering_span(start, end)
        self._num_answers += 1
        if (passage.starts[first], passage.ends[last]) != (start, end):
            self._misaligned.append(question_id)
        return first, last

    def report(self, source: str | Path) -> None:
        """Says in the log how many answers do not begin and end where tokens do."""
        if self._misaligned:
            ids = list(dict.fromkeys(self._misaligned))
            logger.warning(
                "%s: %d of %d answers do not begin and end where tokens do (questions %s); the smallest span of tokens "
                "that covers such an answer stands for it",
                source,
                len(self._misaligned),
                self._num_answers,
                ", ".join(ids[:_NAMED_IDS]) + (", ..." if len(ids) > _NAMED_IDS else ""),
            )
