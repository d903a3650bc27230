"""SQuAD v1.1 and 2.0: questions about a passage, answered by a piece of it; articles with paragraphs in one JSON.

Sources: Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions for Machine Comprehension of Text", and (2018), "Know What
You Don't Know: Unanswerable Questions for SQuAD". The file's layout:

    {"data": [{"paragraphs": [{"context": str, "qas": [{"id": str, "question": str,
                                                        "answers": [{"text": str, "answer_start": int}]}]}]}]}

`answer_start` counts characters (code points) of `context`, which is called the passage here, as in models. Ids may
also be whole numbers. In version 2.0, questions also have `is_impossible`; those for which it is true have no answers.
Their `plausible_answers`, which are wrong, are not read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.records import Record, hub_records, require_columns
from elmo_tasks.data_readers.sources import DataSet, Parsing
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.text import read_lines
from elmo_tasks.tasks import Reading, Task
from elmo_tasks.tasks.reading import NO_ANSWER, Passage, question_columns
from elmo_tasks.text.tokenizers import Tokenizer

_HUB_COLUMNS = ("id", "question", "context", "answers")

_ValueT = TypeVar("_ValueT")

NoAnswer = Annotated[
    bool,
    Field(description="Reads questions without an answer too, as in SQuAD 2.0; `model.no_answer` must be the same."),
]


class SquadConfig(DatasetReaderConfig):
    """Files in the format of SQuAD v1.1 or 2.0, or hub data sets with their columns."""

    type: Literal["squad"] = "squad"
    no_answer: NoAnswer = False
    share: float = Field(
        1.0, gt=0, le=1, description="The share of the passages to read, with their questions, evenly spread."
    )

    @property
    def task(self) -> Task:
        return Reading(self.no_answer)

    def build(self) -> SquadReader:
        return SquadReader(self)


class SquadReader(DatasetReader):
    """Makes an example of `Reading` from every question, in the order of the file.

    An answer that begins or ends within a token gets the smallest span of tokens that covers it: 1 % in the development
    data, half of them a part of a hyphenated word, which is one token as it is for the biLM. An answer is where the
    file says, even if the passage has the same text elsewhere.

    With a `share` below 1, the other passages and their questions are left out unread.

    What does not follow the format, and is named by its path in the file and the question's id:

    - a file that is not JSON, or does not have the layout above;
    - an answer that is not in the passage at its start;
    - two questions with the same id;
    - a question without an answer, unless `no_answer` is set, or with one although it `is_impossible`.
    """

    version = 5
    config: SquadConfig
    reads_text = True

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        builder, is_taken = self._builder(parsing), _evenly_spread(self.config.share)
        document = parse_json("\n".join(line for _, line in read_lines(path)), path, "JSON")
        for article in Record(document, 0, str(path)).objects("data", separator=": "):
            with parsing.caught():
                for paragraph in article.objects("paragraphs"):
                    if not next(is_taken):
                        continue
                    with parsing.caught():
                        passage = builder.passage(paragraph.get("context", str), paragraph.location)
                        for question in paragraph.objects("qas"):
                            with parsing.caught():
                                yield builder.build(question, passage)

    def hub_examples(self, rows: DataSet, source: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        needed = _HUB_COLUMNS if parsing.needs_labels else _HUB_COLUMNS[:-1]
        require_columns(needed, rows.column_names, source, "expected the columns of SQuAD v1.1")
        builder, is_taken = self._builder(parsing), _evenly_spread(self.config.share)
        passage = None  # that of the row before: all questions about a passage are next to each other
        is_read = False
        for row in hub_records(rows, source):
            with parsing.caught():
                context = row.get("context", str)
                if passage is None or passage.text != context:
                    passage, is_read = builder.passage(context, row.location), next(is_taken)
                if is_read:
                    yield builder.build(with_answers_as_in_files(row) if parsing.needs_labels else row, passage)

    def _builder(self, parsing: Parsing) -> QuestionBuilder:
        return QuestionBuilder(self.tokenizer, self.config.no_answer if parsing.needs_labels else None)


def at_location(make: Callable[[], _ValueT], location: str) -> _ValueT:
    """What `make` returns; errors name the location."""
    try:
        return make()
    except ElmoTasksError as error:
        raise DataError(location, str(error)) from None


def with_answers_as_in_files(row: Record) -> Record:
    """A row of a hub data set, which has the texts and the starts of all answers as two lists."""
    columns = Record(row.get("answers", dict), row.number, f"{row.location}.answers")
    texts, starts = columns.get("text", list), columns.get("answer_start", list)
    if len(texts) != len(starts):
        problem = f"{len(texts)} texts and {len(starts)} starts; expected as many of each"
        raise DataError(columns.location, problem)
    answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    return row._replace(columns={**row.columns, "answers": answers})


def _evenly_spread(share: float) -> Iterator[bool]:
    """Whether each of endlessly many items is in the share: the first, then evenly spread, every tenth for 0.1."""
    return (math.ceil((seen + 1) * share) > math.ceil(seen * share) for seen in itertools.count())


class QuestionBuilder:
    """Makes the examples of one source.

    Arguments:
        no_answer: questions may have no answer; None: answers are not read.
    """

    def __init__(self, tokenizer: Tokenizer, no_answer: bool | None = False) -> None:
        self._tokenizer = tokenizer
        self._no_answer = no_answer
        self._ids: set[str] = set()

    def passage(self, text: str, location: str) -> Passage:
        """A tokenized passage; errors name the location."""
        return at_location(lambda: Passage.of(text, self._tokenizer), location)

    def build(self, question: Record, passage: Passage) -> dict[str, Any]:
        """The example of a question, an object with `id`, `question` and `answers` as files have them."""
        given = () if self._no_answer is None else question.objects("answers")
        answers = [(answer.get("text", str), answer.get("answer_start", int)) for answer in given]
        question_id = str(question.get("id", int if type(question.value("id")) is int else str))
        text = question.get("question", str)
        location = f"{question.location} (question {question_id!r})"
        if question_id in self._ids:
            raise DataError(location, "an earlier question has the same id; each question needs its own")
        self._ids.add(question_id)
        if not answers and self._no_answer is False:
            raise DataError(location, f"{NO_ANSWER}; on_error: 'skip' leaves such questions out")
        is_impossible = question.columns.get("is_impossible")
        if self._no_answer is not None and is_impossible not in (None, not answers):
            problem = f"'is_impossible' is {is_impossible!r:.80}, with {len(answers)} answers"
            raise DataError(location, f"{problem}; expected true without any answer, or false with one")
        return {
            "id": question_id,
            **at_location(lambda: question_columns(text, self._tokenizer), location),
            **passage.columns(),
            "answers": [answer for answer, _ in answers],
            "answer_spans": [
                _find_answer(*answer, passage, f"{location}, answers[{number}]")
                for number, answer in enumerate(answers)
            ],
        }


def _find_answer(text: str, start: int, passage: Passage, location: str) -> tuple[int, int]:
    """The smallest span of tokens that covers an answer."""
    end = start + len(text)
    if not text.strip():
        raise DataError(location, f"the answer {text!r} contains only white space")
    if start < 0 or passage.text[start:end] != text:
        found = repr(passage.text[start:end][:80]) if 0 <= start < len(passage.text) else "nothing"
        passage_length = f"the passage of {len(passage.text)} characters"
        raise DataError(location, f"the answer {text[:80]!r} is not at {start}, where {passage_length} has {found}")
    first, last = passage.covering_span(start, end)
    if first > last:
        raise DataError(
            location, f"the answer {text[:80]!r} has no token; expected a tokenizer that keeps all of the text"
        )
    return first, last
