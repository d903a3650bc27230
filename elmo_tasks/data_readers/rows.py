"""Your own data without code: JSON lines and hub data sets, with their columns named in the config.

Tables and exports of annotation tools are read here too, once an extra has made rows of them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import pydantic
from pydantic import Field

from elmo_tasks import tasks
from elmo_tasks.data_readers.columns import DOCUMENT_BORDER, DocumentNumbers, InputScheme, TagReader
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.records import (
    UNLABELLED,
    Decimal,
    Record,
    check_tokens,
    hub_records,
    is_no_label,
    json_records,
    name_of,
    plain_number,
    read_label,
    read_tagged_tokens,
    require_columns,
    split_items,
)
from elmo_tasks.data_readers.sources import DataSet, Examples, Parsing, class_names
from elmo_tasks.data_readers.squad import NoAnswer, QuestionBuilder, at_location, with_answers_as_in_files
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.text import BYTE_ORDER_MARK, read_lines
from elmo_tasks.tasks import Reading, Tagging, Task
from elmo_tasks.tasks.coreference import token_speakers
from elmo_tasks.tasks.reading import Passage
from elmo_tasks.tasks.semantic_roles import SCHEME
from elmo_tasks.text.prose import prose_lines
from elmo_tasks.text.tag_schemes import TagScheme
from elmo_tasks.text.tokenizers import Tokenizer

logger = logging.getLogger(__name__)

GOLD = frozenset({"label", "labels", "score", "tags", "answers", "clusters"})  # what a row to predict does not need

_TEXTS = frozenset({"text", "premise", "hypothesis"})
_ONE_HOT = frozenset({"0", "1", "0.0", "1.0", "false", "true"})
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
        config: the settings of the reader.
        columns: the columns of what a row holds, as `RowTask.columns` gives them; without those in `GOLD`, examples
            have no gold labels.
        tokenizer: splits texts that are strings; lists of strings are tokens.
        label_names: the names of the labels' class ids, None if they are not class ids.
        means_no_label: whether a label of classification or text pairs means that there is none.
        decimal: separates the fractions of numbers that are strings.
    """

    def __init__(
        self,
        config: RowReaderConfig,
        columns: Mapping[str, str | int],
        tokenizer: Tokenizer,
        label_names: Sequence[str] | None,
        means_no_label: Callable[[str], bool],
        decimal: Decimal,
    ) -> None:
        self._columns, self._tokenizer = columns, tokenizer
        self._label_names, self._means_no_label = label_names, means_no_label
        self._label_separator, self._decimal = config.label_separator, decimal
        self._tag_reader = TagReader(config.tag_scheme, config.input_scheme)
        self._role_reader = TagReader(SCHEME, config.input_scheme)
        self._numbers, self._documents = itertools.count(), DocumentNumbers()
        self._questions = QuestionBuilder(tokenizer, config.no_answer if "answers" in columns else None)
        self._passage: Passage | None = None  # that of the row before: questions about a passage follow each other
        stops = config.on_error == "fail" and not GOLD.isdisjoint(columns)  # at a row to learn from that is not usable
        self._remedy = ". dataset_reader.on_error=skip leaves such rows out" if stops else ""

    def as_given(self, record: Record) -> dict[str, Any]:
        """The texts of a row to predict as they are written, as `input`, and its other columns, as `others`."""
        texts = {name: record.value(column) for name, column in self._columns.items() if name in _TEXTS}
        own = {*self._columns.values(), *_TEXT_KEYS}
        others = {
            "input_line" if name == "line" else str(name): value
            for name, value in record.columns.items()
            if name not in own
        }
        is_raw = texts and all(isinstance(text, str) for text in texts.values())
        return {"others": others, **({"input": texts} if is_raw else {})}

    def _texts(self, record: Record) -> dict[str, Any]:
        """The tokens of the one or two texts."""
        names = [name for name in self._columns if name in _TEXTS]
        return {"tokens" if name == "text" else name: self._tokens(record, name) for name in names}

    def labelled_texts(self, record: Record) -> dict[str, Any]:
        return {**self._texts(record), "label": self._label(record)}

    def texts_with_labels(self, record: Record) -> dict[str, Any]:
        return {**self._texts(record), "labels": self._labels(record)}

    def texts_with_score(self, record: Record) -> dict[str, Any]:
        return {**self._texts(record), "score": self._number(record)}

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
            sentences = self._tokenizer.strings(value.replace(BYTE_ORDER_MARK, ""))
            tokens = list(itertools.chain.from_iterable(sentences))
        else:
            tokens = check_tokens(value, record, column)
        if not tokens:
            problem = f"{name_of(column)} is {value!r}; expected a text with at least one token"
            raise DataError(record.location, f"{problem}{self._remedy}")
        return tokens

    def _label(self, record: Record) -> str | None:
        if "label" not in self._columns:
            return None
        column = self._columns["label"]
        value = record.value(column)
        if self._label_names is not None and is_no_label(value):
            return None
        if value is None or (isinstance(value, str) and not value.strip()):
            raise DataError(record.location, f"{name_of(column)} is {value!r}; expected a label{self._remedy}")
        if isinstance(value, list):
            remedy = "Sets of labels are for the task multi_label, such as the config small/multi_label"
            raise DataError(record.location, f"the label is {value!r:.80}; expected a string. {remedy}")
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
            others = [each for each in ";|,\n" if any(each in label for label in value)]
            if others:
                expected = f"expected labels that {separator!r} separates"
                problem = f"{name_of(column)} has {others[0]!r} in a label; {expected}"
                remedy = f"Set label_separator: {others[0]!r}, or give lists in JSON lines"
                raise DataError(record.location, f"{problem}. {remedy}")
        elif not isinstance(value, list):
            raise DataError(record.location, f"{name_of(column)} is {value!r}; expected a list of labels, or a string")
        if len(value) > len(set(map(str, value))) and {str(each).lower() for each in value} <= _ONE_HOT:
            problem = f"{name_of(column)} is {value!r:.80}, which seems to be 0 or 1 for each label"
            raise DataError(record.location, f"{problem}; expected the names of those that are 1")
        return list(dict.fromkeys(read_label(each, record.location, names=self._label_names) for each in value))

    def _number(self, record: Record) -> float:
        if "score" not in self._columns:
            return math.nan
        column = self._columns["score"]
        value = record.value(column)
        try:
            plain = plain_number(value, self._decimal) if isinstance(value, str) else value
            number = math.nan if isinstance(plain, bool) or "_" in str(plain) else float(plain)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            problem = f"{name_of(column)} is {value!r:.80}; expected a number, such as 3.5"
            raise DataError(record.location, f"{problem}{self._remedy}")
        return number

    def _tagged(self, record: Record, tag_reader: TagReader) -> tuple[list[str], list[str]]:
        columns = self._columns["tokens"], self._columns.get("tags")
        tokens, tags = read_tagged_tokens(record, *columns, self._label_names)
        if not tokens:
            raise DataError(record.location, f"{name_of(columns[0])} has no token; expected at least one")
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
    RowTask(tasks.Classification, ("text", "label"), (), "label", RowExamples.labelled_texts),
    RowTask(tasks.MultiLabel, ("text", "labels"), (), "labels", RowExamples.texts_with_labels),
    RowTask(tasks.Regression, ("text", "score"), (), None, RowExamples.texts_with_score),
    RowTask(tasks.PairRegression, ("premise", "hypothesis", "score"), (), None, RowExamples.texts_with_score),
    RowTask(tasks.TextPairs, ("premise", "hypothesis", "label"), (), "label", RowExamples.labelled_texts),
    RowTask(tasks.Tagging, ("tokens", "tags"), (), "tags", RowExamples.tagging),
    RowTask(tasks.SemanticRoles, ("tokens", "predicate", "tags"), ("lemma",), "tags", RowExamples.semantic_roles),
    RowTask(tasks.Reading, ("question", "passage", "answers"), ("id",), None, RowExamples.reading),
    RowTask(
        tasks.Coreference, ("sentences", "clusters"), ("speakers", "genre", "document"), None, RowExamples.coreference
    ),
)
ROW_TASKS = tasks.TaskRegistry[RowTask]({row_task.task.name: row_task for row_task in _ROW_TASKS})

_COLUMNS = (
    "The column of each thing that a row holds, for example {text: 'review', label: 'stars'}; by default, columns of "
    "these names. A table also has numbers: 0 is the first column, -1 the last. Classification: text, label. "
    "Multi-label: text, labels. Regression: text, score. Text pairs: premise, hypothesis, label. Pair regression: "
    "premise, hypothesis, score. Tagging: tokens, tags"
)
_MORE_COLUMNS = (
    ". Semantic roles: tokens, predicate, tags; optional: lemma. Reading: question, passage, answers; optional: id. "
    "Coreference: sentences, clusters; optional: speakers, genre, document"
)
TableTaskName = Literal["classification", "multi_label", "regression", "text_pairs", "pair_regression", "tagging"]
RowTaskName = Literal[TableTaskName, "semantic_roles", "reading", "coreference"]


class RowReaderConfig(DatasetReaderConfig):
    """The readers of rows among those of data sets.

    The key `task` is the field `task_name`: `task` is the task itself, as for every reader.
    """

    model_config = pydantic.ConfigDict(serialize_by_alias=True)

    task_name: RowTaskName = Field(alias="task", description="What to learn from the rows.")
    columns: Mapping[str, str | int] = Field({}, description=_COLUMNS)
    tag_scheme: TagScheme | None = Field(
        None, description="Tagging: the scheme of the examples' tags; null: tags are not spans."
    )
    no_label: tuple[str, ...] | None = Field(
        None,
        description="Classification and text pairs: the labels that mean that a row has no gold label, for example "
        "['-', '-1']; such rows are left out and counted. By default these are class id -1 of hub data sets, and -1 "
        "where the other labels are whole numbers from 0 with one above 1. With [], -1 is a label.",
    )
    label_separator: Annotated[str, Field(min_length=1)] = Field(
        ",", description="Multi-label classification: separates the labels of a text where they are a string."
    )
    input_scheme: InputScheme = Field(
        "auto",
        description="Tagging and semantic roles: the scheme of the tags in the source; 'auto' finds it from the first "
        "span.",
    )
    no_answer: NoAnswer = False

    @pydantic.model_validator(mode="after")
    def _fits_the_task(self) -> RowReaderConfig:
        self.row_columns()
        if self.tag_scheme and self.task_name != "tagging":
            raise ValueError("tag_scheme is for the task 'tagging'")
        if self.no_answer and self.task_name != "reading":
            raise ValueError("no_answer is for the task 'reading'")
        if self.no_label is not None and ROW_TASKS[self.task_name].labels != "label":
            raise ValueError("no_label is for the tasks 'classification' and 'text_pairs'")
        return self

    def row_columns(self) -> dict[str, str | int]:
        """The column of each thing that a row holds; raises a ValueError if something else is chosen."""
        return ROW_TASKS[self.task_name].columns(self.columns)

    def own_columns(self) -> Mapping[str, str]:
        named = self.row_columns().items()
        return {column: name for name, column in named if isinstance(column, str) and column != name}

    @classmethod
    def can_read(cls, task: Task) -> bool:
        names = get_args(cls.model_fields["task_name"].annotation)
        return any(issubclass(ROW_TASKS[name].task, type(task)) for name in names)

    @property
    def task(self) -> Task:
        task = ROW_TASKS[self.task_name].task
        if task is Reading:
            return Reading(self.no_answer)
        return Tagging(self.tag_scheme) if task is Tagging else task()


class RowReader(DatasetReader):
    """Makes examples of the config's task, one of each row.

    - A text is a string, which is tokenized, or a list of strings, which are its tokens.
    - Tokens and tags are lists, or strings that are split at white space.
    - Labels and tags are strings without the white space around them, or whole numbers, which become their digits; true
      and false become these words. Class ids of hub data sets become their names.
    - Examples in memory have the columns of the task or of the config, with strings as labels.

    A row that lacks a column, or has a value of another kind, is an error. Rows without a gold label are left out, see
    `no_label`.
    """

    version = 6
    config: RowReaderConfig
    reads_text = True

    def columns(self, parsing: Parsing) -> dict[str, str | int]:
        """The column of each thing that is read: `row_columns`, without gold labels if they are not needed."""
        columns = self.config.row_columns().items()
        return {name: column for name, column in columns if parsing.needs_labels or name not in GOLD}

    @abstractmethod
    def records(self, path: Path, parsing: Parsing) -> Iterator[Record]:
        """The rows of a file."""

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        return self._examples(lambda each: self.records(path, each), str(path), None, self.columns(parsing), parsing)

    def hub_examples(self, rows: DataSet, source: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        task = ROW_TASKS[self.config.task_name]
        columns = self.columns(parsing)
        require_columns(map(str, columns.values()), rows.column_names, source, "name them in 'columns'")
        names = class_names(rows.features[str(columns[task.labels])]) if task.labels in columns else None
        return self._examples(lambda _: hub_records(rows, source), source, names, columns, parsing)

    def memory_examples(self, examples: Examples, name: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        """See `DatasetReader`. Tags may be in any scheme, as in files."""
        tag_reader = TagReader(self.config.tag_scheme, self.config.input_scheme)
        for example in super().memory_examples(examples, name, parsing):
            with parsing.caught():
                if self.config.task_name == "tagging":
                    location = f"{name}: example {example['line']}, token "
                    example["tags"] = tag_reader.convert(example["tags"], location, 0)
                yield example

    def _examples(
        self,
        records: Callable[[Parsing], Iterator[Record]],
        source: str,
        names: list[str] | None,
        columns: Mapping[str, str | int],
        parsing: Parsing,
        decimal: Decimal = ".",
    ) -> Iterator[dict[str, Any]]:
        task, config = ROW_TASKS[self.config.task_name], self.config

        @functools.cache
        def means_no_label(label: str) -> bool:
            if config.no_label is not None or label != "-1":
                return label in (config.no_label or ())
            # The whole source decides. It is parsed once more, so that errors are found only once. -1 is a class of a
            # scale with other negative numbers, and may be one next to 0 and 1, as in sentiment.
            others: set[str] = set()
            for record in records(Parsing(skip=parsing.skip)):
                with contextlib.suppress(DataError):
                    others.add(read_label(record.value(columns["label"]), record.location))
            others.discard("-1")
            are_ids = all(re.fullmatch(r"[0-9]{1,9}", label) for label in others)
            if are_ids and (not others or max(map(int, others)) > 1):
                logger.info("%s: the label -1 is read as no gold label; with no_label: [], it is a label", source)
                return True
            if not any(re.fullmatch(r"-[0-9.]+", label) for label in others):
                logger.warning("%s: -1 is read as a label; if it means no gold label, set no_label to ['-1']", source)
            return False

        rows = RowExamples(config, columns, self.tokenizer, names, means_no_label, decimal)
        for record in records(parsing):
            with parsing.caught():
                example = task.make(rows, record)
                if example is None:
                    continue
                if not parsing.needs_labels:
                    example |= rows.as_given(record)
                elif "label" in example and example["label"] is None:
                    parsing.left_out[UNLABELLED] += 1
                    continue
                yield {**example, "line": record.number}


class JsonlConfig(RowReaderConfig):
    """JSON lines: an object on each line."""

    type: Literal["jsonl"] = "jsonl"
    columns: Mapping[str, str] = Field({}, description=_COLUMNS + _MORE_COLUMNS)

    def build(self) -> JsonlReader:
        return JsonlReader(self)


class JsonlReader(RowReader):
    """Reads an object of each line; blank lines are left out."""

    def records(self, path: Path, parsing: Parsing) -> Iterator[Record]:
        with contextlib.closing(read_lines(path)) as lines:
            if self.config.on_error == "skip":
                yield from json_records(lines, path, parsing)
            else:  # an error says if the file is an array, or objects over several lines
                checked = prose_lines(lines, path, "convert the file", json_lines=True)
                yield from json_records(checked, path, parsing)


class HubConfig(RowReaderConfig):
    """Hub data sets, `hub:NAME[#CONFIG][:SPLIT]`. The other readers of rows read them too."""

    type: Literal["hub"] = "hub"
    columns: Mapping[str, str] = Field({}, description=_COLUMNS + _MORE_COLUMNS)

    def build(self) -> HubReader:
        return HubReader(self)


class HubReader(RowReader):
    """Reads hub data sets, and no files."""

    def records(self, path: Path, parsing: Parsing) -> Iterator[Record]:
        raise ElmoTasksError(f"{path}: the reader 'hub' reads hub:NAME[#CONFIG][:SPLIT]; for files, use another reader")
