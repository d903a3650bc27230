"""From a row to an example of a task: one mapping for tables, JSON lines and hub data sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from elmo_tasks import tasks
from elmo_tasks.data_readers.columns import DOCUMENT_BORDER, DocumentNumbers, InputScheme, TagReader
from elmo_tasks.data_readers.records import (
    Decimal,
    Record,
    check_tokens,
    is_no_label,
    plain_number,
    read_label,
    read_tagged_tokens,
    split_items,
)
from elmo_tasks.data_readers.squad import QuestionBuilder, at_location, with_answers_as_in_files
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import BYTE_ORDER_MARK
from elmo_tasks.tasks.coreference import token_speakers
from elmo_tasks.tasks.reading import Passage
from elmo_tasks.tasks.semantic_roles import SCHEME
from elmo_tasks.text.tag_schemes import TagScheme
from elmo_tasks.text.tokenizers import Tokenizer

GOLD = frozenset({"label", "labels", "score", "tags", "answers", "clusters"})  # what a row to predict does not need

_TEXTS = frozenset({"text", "premise", "hypothesis"})
_TEXT_KEYS = _TEXTS | {"tokens", "premise_tokens", "hypothesis_tokens", "sentence1", "sentence2"}  # read by predictors


class RowTask(NamedTuple):
    """What the rows of a task hold."""

    task: type[tasks.Task]
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    labels: str | None  # the one that may have class ids in a hub data set
    # None for a border of documents; its label is None for a row without a gold label
    make: Callable[[RowExamples, Record], dict[str, Any] | None]

    def columns(self, chosen: Mapping[str, str | int]) -> dict[str, str | int]:
        """The column of each thing that a row holds: the chosen one, or the one of the same name.

        What is optional and not chosen is left out: a row may have it under its own name.

        Raises:
            ValueError: something else is chosen.
        """
        if unknown := [name for name in chosen if name not in (*self.needed, *self.optional)]:
            optional = f"; possible: {', '.join(self.optional)}" if self.optional else ""
            raise ValueError(
                f"{unknown[0]!r} is not a column of this task; expected: {', '.join(self.needed)}{optional}"
            )
        return {**{name: name for name in self.needed}, **chosen}


class RowExamples:
    """Makes the examples of one source.

    Arguments:
        columns: the columns of what a row holds, as `RowTask.columns` gives them; without those in `GOLD`, examples
            have no gold labels.
        tokenizer: splits texts that are strings; lists of strings are tokens.
        label_names: the names of the labels' class ids, None if they are not class ids.
        means_no_label: whether a label of classification or text pairs means that there is none.
        label_separator: separates the labels of a set that is a string.
        tag_scheme, input_scheme: of tagging, see `TagReader`; without a scheme, tags are not spans.
        no_answer: questions may have no answer.
        decimal: separates the fractions of numbers that are strings.
    """

    def __init__(
        self,
        columns: Mapping[str, str | int],
        tokenizer: Tokenizer,
        *,
        label_names: Sequence[str] | None = None,
        means_no_label: Callable[[str], bool] = lambda label: False,
        label_separator: str = ",",
        tag_scheme: TagScheme | None = None,
        input_scheme: InputScheme = "auto",
        no_answer: bool = False,
        decimal: Decimal = ".",
    ) -> None:
        self._columns = columns
        self._tokenizer = tokenizer
        self._label_names = label_names
        self._means_no_label = means_no_label
        self._label_separator, self._decimal = label_separator, decimal
        self._tag_reader = TagReader(tag_scheme, input_scheme)
        self._role_reader = TagReader(SCHEME, input_scheme)
        self._numbers, self._documents = itertools.count(), DocumentNumbers()
        self._questions = QuestionBuilder(tokenizer, no_answer if "answers" in columns else None)
        self._passage: Passage | None = None  # that of the row before: questions about a passage follow each other

    def raw_texts(self, record: Record) -> dict[str, Any] | None:
        """The texts of a row to predict as they are written, and its other columns; None if it has no such texts."""
        texts = {name: record.value(column) for name, column in self._columns.items() if name in _TEXTS}
        if not texts or not all(isinstance(text, str) for text in texts.values()):
            return None
        own = {*self._columns.values(), *_TEXT_KEYS}
        return {**{str(name): value for name, value in record.columns.items() if name not in own}, **texts}

    def classification(self, record: Record) -> dict[str, Any]:
        return {"tokens": self._tokens(record, "text"), "label": self._label(record)}

    def text_pairs(self, record: Record) -> dict[str, Any]:
        texts = {name: self._tokens(record, name) for name in ("premise", "hypothesis")}
        return {**texts, "label": self._label(record)}

    def multi_label(self, record: Record) -> dict[str, Any]:
        return {"tokens": self._tokens(record, "text"), "labels": self._labels(record)}

    def regression(self, record: Record) -> dict[str, Any]:
        return {"tokens": self._tokens(record, "text"), "score": self._number(record)}

    def pair_regression(self, record: Record) -> dict[str, Any]:
        texts = {name: self._tokens(record, name) for name in ("premise", "hypothesis")}
        return {**texts, "score": self._number(record)}

    def tagging(self, record: Record) -> dict[str, Any] | None:
        tokens, tags = self._tagged(record, self._tag_reader)
        if tokens[0] == DOCUMENT_BORDER:
            self._documents.border()
            return None
        return {"tokens": tokens, "tags": tags, **self._documents.sentence()}

    def semantic_roles(self, record: Record) -> dict[str, Any]:
        tokens, tags = self._tagged(record, self._role_reader)
        predicate = record.value(self._columns["predicate"])
        if type(predicate) is not int or not 0 <= predicate < len(tokens):
            expected = f"the index of one of the {len(tokens)} tokens, from 0"
            raise DataError(record.location, f"{self._columns['predicate']!r} is {predicate!r}; expected {expected}")
        lemma = self._optional(record, "lemma")
        return {
            "tokens": tokens,
            "tags": tags,
            "predicate": predicate,
            "lemma": "-" if lemma is None else record.get(lemma, str),
            "document": None,
            "sentence": next(self._numbers),
        }

    def reading(self, record: Record) -> dict[str, Any]:
        text = record.get(self._columns["passage"], str)
        if self._passage is None or self._passage.text != text:
            self._passage = self._questions.passage(text, record.location)
        column = self._optional(record, "id")
        question_id = record.number if column is None else record.value(column)
        if type(question_id) not in (str, int):
            raise DataError(record.location, f"{column!r} is {question_id!r}; expected a string or a whole number")
        question = {
            name: record.value(self._columns[name]) for name in ("question", "answers") if name in self._columns
        }
        record = record._replace(columns={"id": str(question_id), **question})
        if isinstance(question.get("answers"), dict):
            record = with_answers_as_in_files(record)
        return self._questions.build(record, self._passage)

    def coreference(self, record: Record) -> dict[str, Any]:
        column = self._columns["sentences"]
        sentences = [check_tokens(sentence, record, column) for sentence in record.get(column, list)]
        given = self._optional(record, "speakers")
        speakers = at_location(
            lambda: token_speakers(given and record.value(given), sentences, str(given)), record.location
        )
        sentences, speakers = ([part for part in parts if part] for parts in (sentences, speakers))
        if not sentences:
            raise DataError(record.location, f"{self._columns['sentences']!r} has no token; expected at least one")
        document, genre = (self._optional(record, name) for name in ("document", "genre"))
        return {
            "document": str(record.number) if document is None else record.get(document, str),
            "genre": None if genre is None else record.get(genre, str),
            "sentences": sentences,
            "speakers": speakers,
            "clusters": self._clusters(record, sum(map(len, sentences))),
        }

    def _optional(self, record: Record, name: str) -> str | int | None:
        """The column of something optional, the chosen one or that of the same name; None if it has no value."""
        column = self._columns.get(name, name if name in record.columns else None)
        return None if column is None or record.value(column) is None else column

    def _tokens(self, record: Record, name: str) -> list[str]:
        """The tokens of a text; there is at least one."""
        column = self._columns[name]
        value = record.value(column)
        if isinstance(value, str):
            tokens = [
                token for sentence in self._tokenizer.strings(value.replace(BYTE_ORDER_MARK, "")) for token in sentence
            ]
        else:
            tokens = check_tokens(value, record, column)
        if not tokens:
            raise DataError(record.location, f"{column!r} is {value!r}; expected a text with at least one token")
        return tokens

    def _label(self, record: Record) -> str | None:
        if "label" not in self._columns:
            return None
        value = record.value(self._columns["label"])
        if self._label_names is not None and is_no_label(value):
            return None
        label = read_label(value, record.location, names=self._label_names)
        return None if self._means_no_label(label) else label

    def _labels(self, record: Record) -> list[str]:
        """The labels of a set, each once: a list, or a string with separators, which is blank if there are none."""
        if "labels" not in self._columns:
            return []
        column, separator = self._columns["labels"], self._label_separator
        value = record.value(column)
        if isinstance(value, str):
            value = split_items(value, record, column, separator) if value.strip() else []
            if other := next(
                (each for each in ";|," if each != separator and any(each in label for label in value)), ""
            ):
                problem = f"{column!r} has {other!r} in a label; expected labels that {separator!r} separates"
                raise DataError(
                    record.location, f"{problem}. Set label_separator: {other!r}, or give lists in JSON lines"
                )
        elif not isinstance(value, list):
            raise DataError(record.location, f"{column!r} is {value!r}; expected a list of labels, or a string")
        return list(dict.fromkeys(read_label(each, record.location, names=self._label_names) for each in value))

    def _number(self, record: Record) -> float:
        if "score" not in self._columns:
            return math.nan
        column = self._columns["score"]
        value = record.value(column)
        try:
            plain = plain_number(value, self._decimal) if isinstance(value, str) else value
            number = math.nan if isinstance(plain, bool) else float(plain)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(record.location, f"{column!r} is {value!r:.80}; expected a number, such as 3.5")
        return number

    def _tagged(self, record: Record, tag_reader: TagReader) -> tuple[list[str], list[str]]:
        columns = self._columns["tokens"], self._columns.get("tags")
        tokens, tags = read_tagged_tokens(record, *columns, self._label_names)
        if not tokens:
            raise DataError(record.location, f"{columns[0]!r} has no token; expected at least one")
        if tokens[0] == DOCUMENT_BORDER and tag_reader is self._tag_reader:  # its tag may be anything
            return tokens, tags
        return tokens, tag_reader.convert(tags, *record.token_location)

    def _clusters(self, record: Record, num_tokens: int) -> list[list[list[int]]]:
        if "clusters" not in self._columns:
            return []
        column = self._columns["clusters"]
        for cluster in record.get(column, list):
            for mention in cluster if isinstance(cluster, list) else [cluster]:
                is_pair = isinstance(mention, list) and len(mention) == 2 and all(type(end) is int for end in mention)
                if not is_pair or not 0 <= mention[0] <= mention[1] < num_tokens:
                    expected = f"[first, last token] in a document of {num_tokens} tokens, the last inclusive"
                    raise DataError(record.location, f"{column!r} has the mention {mention!r}; expected {expected}")
        return record.get(column, list)


_ROW_TASKS = (
    RowTask(tasks.Classification, ("text", "label"), (), "label", RowExamples.classification),
    RowTask(tasks.MultiLabel, ("text", "labels"), (), "labels", RowExamples.multi_label),
    RowTask(tasks.Regression, ("text", "score"), (), None, RowExamples.regression),
    RowTask(tasks.PairRegression, ("premise", "hypothesis", "score"), (), None, RowExamples.pair_regression),
    RowTask(tasks.TextPairs, ("premise", "hypothesis", "label"), (), "label", RowExamples.text_pairs),
    RowTask(tasks.Tagging, ("tokens", "tags"), (), "tags", RowExamples.tagging),
    RowTask(tasks.SemanticRoles, ("tokens", "predicate", "tags"), ("lemma",), "tags", RowExamples.semantic_roles),
    RowTask(tasks.Reading, ("question", "passage", "answers"), ("id",), None, RowExamples.reading),
    RowTask(
        tasks.Coreference, ("sentences", "clusters"), ("speakers", "genre", "document"), None, RowExamples.coreference
    ),
)
ROW_TASKS = tasks.TaskRegistry[RowTask]({row_task.task.name: row_task for row_task in _ROW_TASKS})
