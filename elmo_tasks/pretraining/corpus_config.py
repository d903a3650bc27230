"""Where the text of pretraining and fine-tuning comes from: text files, or a task's data set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import datasets
from pydantic import Field

import elmo_tasks.data_readers  # noqa: F401 - registers the readers
from elmo_tasks.config import Part
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.pretraining.corpus import Corpus
from elmo_tasks.pretraining.prepare import Document, prepare_documents, prepare_text


class CorpusConfig(Part):
    """Where the text comes from."""

    default_type: ClassVar[str | None] = "text"

    def build(self, workers: int | None = None) -> Corpus:
        """The corpus, prepared the first time, then from the cache.

        Arguments:
            workers: the number of processes that prepare it, where they can share the work; by default, all CPUs.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its corpus")


class TextCorpus(CorpusConfig):
    """Text files.

    Blank lines separate documents; in a file without blank lines between its lines, every line is a document.
    """

    type: Literal["text"] = "text"
    paths: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Files or globs of UTF-8 text, plain or compressed (.gz, .xz, .bz2, .zip), read in the order of"
        " their names, none twice."
    )
    tokenized: bool = Field(
        default=False,
        description="Whether a line is a sentence with white space between its tokens; otherwise it is a paragraph of"
        " raw text, to be split into sentences and tokens.",
    )
    deduplicate: bool = Field(
        default=False,
        description="Whether lines that have been seen before are left out; takes some 100 bytes of memory a line.",
    )
    held_out: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.01, description="The share of the documents that is held out: at least one document, and never all."
    )
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="Which documents are held out.")

    def build(self, workers: int | None = None) -> Corpus:
        """The corpus: prepared in parallel and streaming the first time, then read from `<cache folder>/corpora`.

        What is kept has a key made of the files' contents, the settings that matter and the tokenizer's version.
        Writes are atomic, and two processes may prepare the same corpus at once.

        Arguments:
            workers: the number of processes that tokenize; by default, of the CPUs that this process may use. The
                result does not depend on it.

        Raises:
            DataError: a file is missing, damaged or not UTF-8 text; file and line are named.
            ElmoTasksError: there are fewer than two documents.
            CacheError: the cache's folder cannot be written, or its disk is full.
        """
        return prepare_text(**self.model_dump(exclude={"type"}), workers=workers)


class DatasetCorpus(CorpusConfig):
    """The token sequences of a data set, as a task's reader reads them; its labels are ignored.

    Neighbouring examples of the same `document`, where the reader tells documents, are one document; otherwise every
    example is one.
    """

    type: Literal["dataset"] = "dataset"
    dataset_reader: DatasetReaderConfig
    train_data_path: str = Field(description="file, compressed or not, or hub data set, to learn from")
    validation_data_path: str = Field(description="the same, to measure the perplexity on")

    def build(self, workers: int | None = None) -> Corpus:
        """The corpus; see `prepare_documents`. It takes one process.

        Raises:
            DataError: a file is missing or does not follow its format.
        """
        reader = self.dataset_reader.build()
        training, held_out = reader.read(self.train_data_path), reader.read(self.validation_data_path)
        # The readers' cache names its files by reader, settings and content.
        names = [Path(data.cache_files[0]["filename"]).stem for data in (training, held_out)]
        return prepare_documents(
            _documents(reader, training), _documents(reader, held_out), f"data set {'-'.join(names)}"
        )


def _documents(reader: DatasetReader, data: datasets.Dataset) -> Iterator[Document]:
    if "document" not in data.column_names:
        yield from (reader.tokens(example) for example in data)
        return
    for _, examples in itertools.groupby(data, key=lambda example: example["document"]):
        yield [tokens for example in examples for tokens in reader.tokens(example)]
