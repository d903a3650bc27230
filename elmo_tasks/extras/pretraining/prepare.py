"""Prepares corpora: streams text to numbered tokens on disk, once; later the same corpus is read from the cache.

The result depends only on the text and the settings, not on the number of processes or the borders of chunks.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import datasets
import numpy as np
import numpy.typing as npt
from pydantic import Field

import elmo_tasks.data_readers  # noqa: F401 - registers the readers
from elmo_tasks.config import LocalPath, Part, own_code
from elmo_tasks.data_readers.reader import DatasetReaderConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.pretraining.corpus import Corpus, CorpusPart, CorpusWriter
from elmo_tasks.extras.pretraining.tokenize_files import number_tokens, text_lines, tokenize_files
from elmo_tasks.extras.raw_text import TOKENIZED_ADVICE
from elmo_tasks.files.atomic import atomic_folder, write_errors
from elmo_tasks.files.cache import content_hash, used_cache
from elmo_tasks.files.paths import refuse_stream
from elmo_tasks.predictors.inputs import find_files
from elmo_tasks.progress import progress_bar
from elmo_tasks.tasks import Task
from elmo_tasks.text.prose import looks_like, prose_lines
from elmo_tasks.text.tokenizer_config import TokenizerChoice, build_tokenizer
from elmo_tasks.text.tokenizers import Tokenizer, WhitespaceTokenizer

logger = logging.getLogger(__name__)

# Raise this number when the files of a corpus or the choice of held-out documents change.
_VERSION = 2

_MEGABYTE = 1_000_000
_SENTENCES_AT_ONCE = 10_000
# Smaller texts are tokenized faster than processes start.
_MIN_PARALLEL_BYTES = 500_000


class CorpusConfig(Part):
    """Where the text comes from."""

    default_type: ClassVar[str | None] = "text"
    vocabulary: LocalPath | None = Field(
        default=None,
        description="A file with the words to predict, one per line, as in bilm-tf: <S>, </S>, <UNK>, then others by"
        " frequency. null: `vocabulary_size` and `min_count` choose them; otherwise these have no effect.",
    )

    def build(self, workers: int | None = None) -> Corpus:
        """The corpus, prepared the first time, then from the cache.

        Arguments:
            workers: processes that prepare it; by default one per CPU that this process may use.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its corpus")


class TextCorpus(CorpusConfig):
    """Text files.

    Blank lines separate documents; in a file without blank lines between its lines, every line is a document.
    """

    type: Literal["text"] = "text"
    paths: Annotated[tuple[LocalPath, ...], Field(min_length=1)] = Field(
        description="Files, folders or globs of UTF-8 text, plain or compressed (.gz, .xz, .bz2, .zip), read in the"
        " order of their names, each once."
    )
    tokenized: bool = Field(
        default=False,
        description="Whether a line is a sentence with white space between its tokens; otherwise it is a paragraph of"
        " raw text, which `tokenizer` splits into sentences and tokens.",
    )
    tokenizer: TokenizerChoice = Field(
        default="treebank",
        description="How raw text is split: 'treebank' is for English, 'unicode' for any language. Commands that use"
        " the biLM split text in the same way.",
    )
    held_out: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.01, description="The share of the documents that is held out: at least one document, never all."
    )
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="Which documents are held out.")

    def build(self, workers: int | None = None) -> Corpus:
        """The corpus: prepared in parallel the first time, then read from `<cache folder>/corpora`.

        Its key is made of the files' contents, the settings that matter, and the tokenizer's version and own code. Two
        processes may prepare the same corpus at once.

        Raises:
            DataError: a file is missing, damaged or not UTF-8 text; the message names file and line.
            ElmoTasksError: there are fewer than two documents.
            WriteError: the cache's folder cannot be written, or its disk is full.
        """
        files = list(find_files(self.paths).values())
        for file in files:
            refuse_stream(file)
        try:
            contents = [content_hash(file) for file in files]
        except OSError as error:
            raise DataError(error.filename, f"cannot be read ({error.strerror})") from None
        contents += own_code(self)
        tokenizer = build_tokenizer("whitespace" if self.tokenized else self.tokenizer)
        settings = self.model_dump(exclude={"type", "paths", "tokenizer", "vocabulary"})
        key = {**settings, "tokenizer": None if self.tokenized else tokenizer.version, "content": contents}
        description = {"files": [str(file) for file in files], **settings}
        return _prepare(key, description, lambda writer: self._write(files, tokenizer, writer, workers))

    def _write(
        self, files: Sequence[Path], tokenizer: Tokenizer, writer: CorpusWriter, workers: int | None
    ) -> npt.NDArray[np.bool_]:
        """Adds the text of the files to a corpus; returns which documents are held out."""
        for file in files if not self.tokenized else ():
            if found := looks_like(file, next(filter(str.strip, text_lines(file)), ""), json_lines=True):
                logger.warning("%s: looks like %s", file, found)
        num_bytes = sum(file.stat().st_size for file in files)
        workers = 1 if num_bytes < _MIN_PARALLEL_BYTES else workers
        texts = tokenize_files(files, tokenizer, workers=workers)
        done = 0
        with contextlib.closing(texts), progress_bar() as progress:
            bar = progress.add_task("preparing the corpus (MB)", total=num_bytes / _MEGABYTE, note="")
            for text in texts:
                done += text.num_bytes
                writer.add(text, done / num_bytes)
                progress.update(bar, completed=done / _MEGABYTE)
        if writer.num_documents < 2:
            raise ElmoTasksError(
                f"{', '.join(self.paths)}: holds {'a single document' if writer.num_documents else 'no text'};"
                " expected at least two documents, one to train on and one to hold out (blank lines separate"
                " documents; where there are none, every line is a document)"
            )
        return choose_held_out(writer.num_documents, self.held_out, self.seed)


def read_text(paths: Sequence[str], tokenizer: Tokenizer) -> tuple[CorpusPart, list[str]]:
    """The sentences of text files as one document, in memory, and the distinct tokens by their numbers.

    Arguments:
        paths: files, folders or globs; see `find_files`.
        tokenizer: splits each line, which is a paragraph; `WhitespaceTokenizer` for a tokenized sentence on each line.

    Raises:
        DataError: a file is missing, damaged or not UTF-8 text, or no file has a token.
    """

    def sentences() -> Iterator[Sequence[str]]:
        for file in find_files(paths).values():
            lines: Iterable[tuple[int, str]] = enumerate(text_lines(file), start=1)
            if not isinstance(tokenizer, WhitespaceTokenizer):
                lines = prose_lines(lines, file, TOKENIZED_ADVICE, json_lines=True)
            for _, line in lines:
                yield from tokenizer.strings(line)

    text = number_tokens(sentences())
    if not text.types:
        raise DataError(", ".join(paths), "holds no text; expected at least one sentence")
    return CorpusPart.of(text), text.types


def choose_held_out(num_documents: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Which of D documents, at least 2, are held out, (D,): a random share, at least one document, never all."""
    number = min(max(1, round(share * num_documents)), num_documents - 1)
    is_held_out = np.zeros(num_documents, dtype=bool)
    is_held_out[np.random.default_rng(seed).choice(num_documents, number, replace=False)] = True
    return is_held_out


def _prepare(
    key: dict[str, Any], description: dict[str, Any], write: Callable[[CorpusWriter], npt.NDArray[np.bool_]]
) -> Corpus:
    """The corpus for a key. If it is missing, `write` adds its sentences and returns which documents are held out."""
    folder = used_cache("corpora") / hashlib.sha256(json.dumps([_VERSION, key]).encode()).hexdigest()
    begin = time.monotonic()
    with write_errors(folder):
        if folder.exists():
            try:
                return Corpus(folder)
            except (OSError, EOFError, ValueError, RecursionError):
                logger.warning("%s: the prepared corpus is damaged; it is prepared again", folder)
                shutil.rmtree(folder)
    with atomic_folder(folder) as temporary:
        writer = CorpusWriter(temporary)
        writer.finish(write(writer), {"version": _VERSION, **description})
    logger.info("%s; prepared in %.1f s: %s", writer.summary(), time.monotonic() - begin, folder)
    del writer  # its types take as much memory as those of the corpus
    return Corpus(folder)


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
        """The corpus, which one process prepares.

        Raises:
            DataError: a data set cannot be read, or has no example.
            WriteError: the cache's folder cannot be written, or its disk is full.
        """
        reader = self.dataset_reader.build()
        parts = reader.read(self.train_data_path), reader.read(self.validation_data_path)
        digests = [hashlib.sha256(), hashlib.sha256()]
        for digest, data in zip(digests, parts, strict=True):
            for example in data:
                digest.update(json.dumps(example).encode())
        key = {"key": f"data set {'-'.join(digest.hexdigest() for digest in digests)}, shared texts once"}

        def write(writer: CorpusWriter) -> npt.NDArray[np.bool_]:
            ends = []
            for data in parts:
                sentences = _sentences(reader.task, data)
                while some := list(itertools.islice(sentences, _SENTENCES_AT_ONCE)):
                    writer.add(number_tokens(some))
                ends.append(writer.num_documents)
            return np.arange(ends[1]) >= ends[0]

        return _prepare(key, key, write)


def _sentences(task: Task, data: datasets.Dataset) -> Iterator[Sequence[str] | None]:
    """The texts of the examples, and None where a document begins."""
    for _, examples in itertools.groupby(_new_texts(task, data), key=lambda each: each[0]):
        yield None
        for _, new in examples:
            yield from new


def _new_texts(task: Task, data: datasets.Dataset) -> Iterator[tuple[str | int, list[Sequence[str]]]]:
    """The document of each example, or its row if it has none; and its texts, without those of the example before."""
    before: list[Sequence[str]] = []
    for row, example in enumerate(data):
        document, texts = example.get("document"), list(task.texts(example))
        yield row if document is None else document, [tokens for tokens in texts if tokens not in before]
        before = texts
