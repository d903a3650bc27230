"""Your own data without code: JSON lines and hub data sets, with their columns named in the config."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import datasets
import pydantic
from pydantic import Field

from elmo_tasks.data_readers.columns import InputScheme, TagReader
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.records import (
    UNLABELLED,
    Decimal,
    Record,
    hub_records,
    json_records,
    read_label,
    require_columns,
)
from elmo_tasks.data_readers.row_examples import GOLD, ROW_TASKS, RowExamples
from elmo_tasks.data_readers.sources import Examples, Parsing, class_names
from elmo_tasks.data_readers.squad import NoAnswer
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.text import read_lines
from elmo_tasks.tasks import Reading, Tagging, Task
from elmo_tasks.text.prose import prose_lines
from elmo_tasks.text.tag_schemes import TagScheme

logger = logging.getLogger(__name__)

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

    A text is a string, which is tokenized, or a list of strings, which are its tokens. Tokens and tags are lists, or
    strings that are split at white space. Labels and tags are strings without the white space around them, or whole
    numbers, which become their digits; true and false become these words. Class ids of hub data sets become their
    names. Rows without a gold label are left out, see `no_label`. Examples in memory have the columns of the task or of
    the config, with strings as labels.

    Raises (from `read`):
        DataError: a row lacks a column, or a value is not of these kinds. File and line, or row, are named.
    """

    version = 5
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

    def hub_examples(self, rows: datasets.Dataset, source: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
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
        settings: Any = {
            key: getattr(config, key) for key in ("tag_scheme", "input_scheme", "label_separator", "no_answer")
        }

        @functools.cache
        def means_no_label(label: str) -> bool:
            if config.no_label is not None or label != "-1":
                return label in (config.no_label or ())
            # The whole source decides. It is parsed once more, so that errors are found only once.
            again = Parsing(skip=parsing.skip, found=parsing.found)
            return _minus_one_means_no_label(records(again), columns["label"], source)

        settings |= {"label_names": names, "means_no_label": means_no_label, "decimal": decimal}
        rows = RowExamples(columns, self.tokenizer, **settings)
        for record in records(parsing):
            with parsing.caught():
                example = task.make(rows, record)
                if example and not parsing.needs_labels and (given := rows.raw_texts(record)):
                    example["input"] = given
                if example and example.get("label", "") is None and parsing.needs_labels:
                    parsing.left_out[UNLABELLED] += 1
                elif example:
                    yield {**example, "line": record.number}


def _minus_one_means_no_label(records: Iterable[Record], column: str | int, source: str) -> bool:
    """Whether the label -1 of a source means that there is no gold label; the log says how it is read.

    It is a class of a scale with other negative numbers, and may be one next to 0 and 1, as in sentiment.
    """
    others: set[str] = set()
    for record in records:
        with contextlib.suppress(DataError):
            others.add(read_label(record.value(column), record.location))
    others.discard("-1")
    if all(re.fullmatch(r"[0-9]{1,9}", label) for label in others) and (not others or max(map(int, others)) > 1):
        logger.info("%s: the label -1 is read as no gold label; with no_label: [], it is a label", source)
        return True
    if not any(re.fullmatch(r"-[0-9.]+", label) for label in others):
        logger.warning("%s: -1 is read as a label; if it means no gold label, set no_label to ['-1']", source)
    return False


class JsonlConfig(RowReaderConfig):
    """JSON lines: an object on each line."""

    type: Literal["jsonl"] = "jsonl"
    columns: Mapping[str, str] = Field({}, description=_COLUMNS + _MORE_COLUMNS)

    def build(self) -> JsonlReader:
        return JsonlReader(self)


class JsonlReader(RowReader):
    """Reads an object of each line; blank lines are left out."""

    def records(self, path: Path, parsing: Parsing) -> Iterator[Record]:
        lines = read_lines(path)
        if self.config.on_error != "skip":  # an error says if the file is an array, or objects over several lines
            lines = prose_lines(lines, path, "convert the file", json_lines=True)
        return json_records(lines, path, parsing)


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
