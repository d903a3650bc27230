"""Corpora for pretraining and fine-tuning: what to prepare, and what has been prepared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from elmo_tasks.config import Part
from elmo_tasks.pretraining.corpus_files import COUNTS, CorpusPart, TypeList, read_array
from elmo_tasks.pretraining.preparation import Document, prepare_text, prepare_tokens

__all__ = ["Corpus", "CorpusConfig", "CorpusPart", "TextCorpus", "prepare_documents"]


class Corpus:
    """A prepared corpus, memory-mapped.

    Arguments:
        folder: the corpus's folder in the cache.

    Attributes:
        types: the distinct tokens of both parts, the most frequent of the training part first, ties in alphabetical
            order.
        counts: how often each occurs in the training part, (number of types,).
        training: the part to train on.
        held_out: the part to evaluate on; no document is in both.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.types: Sequence[str] = TypeList(folder)
        self.counts: npt.NDArray[np.int64] = read_array(folder / COUNTS)
        self.training = CorpusPart.load(folder / "training")
        self.held_out = CorpusPart.load(folder / "held_out")

    def __repr__(self) -> str:
        parts = f"{self.training.num_tokens:,} tokens, {self.held_out.num_tokens:,} held out"
        return f"Corpus({parts}, {len(self.types):,} distinct; {self.folder})"


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
            DataError: a file is missing, damaged or no UTF-8 text; file and line are named.
            ElmoTasksError: there are fewer than two documents.
            CacheError: the cache's folder cannot be written, or its disk is full.
        """
        return Corpus(
            prepare_text(
                self.paths,
                tokenized=self.tokenized,
                deduplicate=self.deduplicate,
                held_out=self.held_out,
                seed=self.seed,
                workers=workers,
            )
        )


def prepare_documents(training: Iterable[Document], held_out: Iterable[Document], key: str) -> Corpus:
    """A corpus of documents that are tokenized already, for example a data set's, kept in the cache under a key.

    Arguments:
        training: documents, each an iterable of sentences, each a sequence of tokens. They are streamed, and not read
            at all if the cache has the key.
        held_out: likewise, for the part to evaluate on.
        key: names the content: another content has to have another key.

    Raises:
        ElmoTasksError: one of the parts has no token.
        CacheError: the cache's folder cannot be written, or its disk is full.
    """
    return Corpus(prepare_tokens(training, held_out, key))
