"""Sentences with a topic, from lines `topic<TAB>token token token`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import datasets

from elmo_tasks.data_readers.labels import LABELS, label_tensor
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.sst import ClassificationBatch
from elmo_tasks.errors import DataError
from elmo_tasks.files import read_lines
from elmo_tasks.text.vocabulary import Vocabulary


class TopicsConfig(DatasetReaderConfig):
    """A topic, a tab and a sentence on each line."""

    type: Literal["topics"] = "topics"

    def build(self) -> TopicsReader:
        return TopicsReader(self)


class TopicsReader(DatasetReader):
    """Makes examples `{"tokens": [str], "label": str}`."""

    features: ClassVar[datasets.Features] = datasets.Features(
        {"tokens": datasets.Sequence(datasets.Value("string")), "label": datasets.Value("string")}
    )

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        for number, line in read_lines(path):
            topic, _, sentence = line.partition("\t")
            if not sentence.strip():
                raise DataError(path, f"{line!r}; wanted a topic, a tab and a sentence", number)
            yield {"tokens": sentence.split(), "label": topic, "line": number}

    def tokens(self, example: Mapping[str, Any]) -> Iterable[Sequence[str]]:
        return (example["tokens"],)

    def labels(self, example: Mapping[str, Any]) -> Mapping[str, Iterable[str]]:
        return {LABELS: (example["label"],)}

    def length(self, example: Mapping[str, Any]) -> int:
        return len(example["tokens"])

    def collate(self, examples: list[dict[str, Any]], vocab: Vocabulary) -> ClassificationBatch:
        tokens = vocab.index_tokens([example["tokens"] for example in examples])
        return ClassificationBatch(examples=examples, tokens=tokens, labels=label_tensor(examples, vocab))
