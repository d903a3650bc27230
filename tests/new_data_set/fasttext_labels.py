"""Texts with a label, from fastText's lines `__label__LABEL token token token`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from elmo_tasks.data_readers import DatasetReader, DatasetReaderConfig, Parsing
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import read_lines
from elmo_tasks.tasks import Classification, Task

PREFIX = "__label__"


class FastTextConfig(DatasetReaderConfig):
    """A label and a tokenized text on each line, as fastText has them."""

    type: Literal["fasttext"] = "fasttext"
    task: ClassVar[Task] = Classification()

    def build(self) -> FastTextReader:
        return FastTextReader(self)


class FastTextReader(DatasetReader):
    """Makes examples of `Classification`, one of each line."""

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        for number, line in read_lines(path):
            with parsing.caught():  # an error ends the reading, or only skips the line, as `on_error` says
                label, *tokens = line.split() or [""]
                if not label.startswith(PREFIX) or not tokens:
                    raise DataError(path, f"{line[:80]!r}; expected {PREFIX}LABEL and a text", number)
                yield {"tokens": tokens, "label": label.removeprefix(PREFIX), "line": number}
