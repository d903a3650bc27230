"""A task's data set as text to fine-tune a biLM on; its labels are ignored."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import datasets
from pydantic import Field

import elmo_tasks.data_readers  # noqa: F401 - registers the readers
from elmo_tasks.config import LocalPath
from elmo_tasks.data_readers.reader import DatasetReaderConfig
from elmo_tasks.extras.pretraining.corpus import Corpus
from elmo_tasks.extras.pretraining.prepare import CorpusConfig, Document, prepare_documents
from elmo_tasks.tasks import Task


class DatasetCorpus(CorpusConfig):
    """The token sequences of a data set, as a task's reader reads them.

    Neighbouring examples of the same `document` are one document; an example without one is a document. A text that
    neighbouring examples share, such as a sentence with several predicates or a passage with several questions, is read
    once.
    """

    type: Literal["dataset"] = "dataset"
    dataset_reader: DatasetReaderConfig
    train_data_path: LocalPath = Field(description="file, compressed or not, or hub data set, to learn from")
    validation_data_path: LocalPath = Field(description="the same, to measure the perplexity on")

    def build(self, workers: int | None = None) -> Corpus:
        """The corpus; see `prepare_documents`. It uses one process."""
        reader = self.dataset_reader.build()
        training, held_out = reader.read(self.train_data_path), reader.read(self.validation_data_path)
        # The readers' cache names its files by reader, settings and content.
        names = ["+".join(Path(file["filename"]).stem for file in data.cache_files) for data in (training, held_out)]
        return prepare_documents(
            _documents(reader.task, training),
            _documents(reader.task, held_out),
            f"data set {'-'.join(names)}, shared texts once",
        )


def _documents(task: Task, data: datasets.Dataset) -> Iterator[Document]:
    for _, texts in itertools.groupby(_new_texts(task, data), key=lambda each: each[0]):
        yield [tokens for _, new in texts for tokens in new]


def _new_texts(task: Task, data: datasets.Dataset) -> Iterator[tuple[str | int, list[Sequence[str]]]]:
    """The document of each example, or its row if it has none; and its texts, without those of the example before."""
    before: list[Sequence[str]] = []
    for row, example in enumerate(data):
        document, texts = example.get("document"), list(task.texts(example))
        yield row if document is None else document, [tokens for tokens in texts if tokens not in before]
        before = texts
