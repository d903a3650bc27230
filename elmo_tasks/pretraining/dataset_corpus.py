"""A task's data set as text to fine-tune a biLM on; its labels are ignored."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import datasets
from pydantic import Field

import elmo_tasks.data_readers  # noqa: F401 - registers the readers
from elmo_tasks.data_readers.reader import DatasetReaderConfig
from elmo_tasks.pretraining.corpus import Corpus
from elmo_tasks.pretraining.prepare import CorpusConfig, Document, prepare_documents
from elmo_tasks.tasks import Task


class DatasetCorpus(CorpusConfig):
    """The token sequences of a data set, as a task's reader reads them.

    Neighbouring examples of the same `document`, if the reader names documents, are one document; otherwise every
    example is one.
    """

    type: Literal["dataset"] = "dataset"
    dataset_reader: DatasetReaderConfig
    train_data_path: str = Field(description="file, compressed or not, or hub data set, to learn from")
    validation_data_path: str = Field(description="the same, to measure the perplexity on")

    def build(self, workers: int | None = None) -> Corpus:
        """The corpus; see `prepare_documents`. It uses one process."""
        reader = self.dataset_reader.build()
        training, held_out = reader.read(self.train_data_path), reader.read(self.validation_data_path)
        # The readers' cache names its files by reader, settings and content.
        names = [Path(data.cache_files[0]["filename"]).stem for data in (training, held_out)]
        return prepare_documents(
            _documents(reader.task, training), _documents(reader.task, held_out), f"data set {'-'.join(names)}"
        )


def _documents(task: Task, data: datasets.Dataset) -> Iterator[Document]:
    if "document" not in data.column_names:
        yield from (task.texts(example) for example in data)
        return
    for _, examples in itertools.groupby(data, key=lambda example: example["document"]):
        yield [tokens for example in examples for tokens in task.texts(example)]
