"""Sentences with a topic, from lines `topic<TAB>token token token`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from elmo_tasks.data_readers import DatasetReader, DatasetReaderConfig, Parsing
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import read_lines
from elmo_tasks.tasks import Task
from topics.task import Topics


class TopicsConfig(DatasetReaderConfig):
    """A topic, a tab and a sentence on each line."""

    type: Literal["topics"] = "topics"
    task: ClassVar[Task] = Topics()

    def build(self) -> TopicsReader:
        return TopicsReader(self)


class TopicsReader(DatasetReader):
    """Makes examples of `Topics`, one of each line."""

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        for number, line in read_lines(path):
            topic, _, sentence = line.partition("\t")
            if not sentence.strip():
                raise DataError(path, f"{line!r}; expected a topic, a tab and a sentence", number)
            yield {"tokens": sentence.split(), "topic": topic, "line": number}
