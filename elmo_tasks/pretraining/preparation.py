"""Prepares a corpus: text to numbered tokens on disk, in parallel, streaming, once.

The result depends on the text and the settings alone, not on the number of processes or the borders of chunks.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import logging
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files import atomic_folder, cache_folder, content_hash
from elmo_tasks.pretraining.corpora import (
    find_files,
    read_chunks,
    separates_documents,
    without_repeated_lines,
)
from elmo_tasks.pretraining.corpus_files import is_intact, remove_damaged
from elmo_tasks.pretraining.corpus_writer import CorpusWriter, HeldOutRule, write_errors
from elmo_tasks.pretraining.tokenized_chunk import ChunkBuilder, TokenizedChunk, begin_worker, tokenize_chunk
from elmo_tasks.progress import progress_bar

logger = logging.getLogger(__name__)

Document = Iterable[Sequence[str]]

# To be raised whenever the files' layout changes, or the sentences and tokens of `elmo_tasks.text.tokenization` do.
_VERSION = 1

_MEGABYTE = 1_000_000
_TOKENS_AT_ONCE = 200_000
# Smaller texts are tokenized sooner than processes are started.
_MIN_PARALLEL_BYTES = 500_000


def prepare_text(
    paths: Sequence[str],
    *,
    tokenized: bool,
    deduplicate: bool,
    held_out: float,
    seed: int,
    workers: int | None = None,
) -> Path:
    """The folder of the corpus that some text files make, prepared now or earlier.

    Arguments: those of `TextCorpus`, and
        workers: the number of processes that tokenize; by default, of the CPUs that this process may use.

    Raises:
        DataError: a file is missing, damaged or no UTF-8 text.
        ElmoTasksError: there are fewer than two documents.
        CacheError: the cache's folder cannot be written, or is full.
    """
    files = find_files(paths)
    settings = {"tokenized": tokenized, "deduplicate": deduplicate, "held_out": held_out, "seed": seed}
    tokenizer = None if tokenized else f"nltk {importlib.metadata.version('nltk')}"
    key = {**settings, "tokenizer": tokenizer, "content": [_content_hash(file) for file in files]}
    num_bytes = sum(file.stat().st_size for file in files)
    workers = workers if num_bytes >= _MIN_PARALLEL_BYTES else 1

    def write(writer: CorpusWriter) -> HeldOutRule:
        done = 0
        results = _in_parallel(_jobs(files, tokenized, deduplicate), workers or _num_cpus())
        with contextlib.closing(results), progress_bar() as progress:
            bar = progress.add_task("preparing the corpus (MB)", total=num_bytes / _MEGABYTE, note="")
            for size, chunk in results:
                done += size
                writer.add(chunk, done / num_bytes)
                progress.update(bar, completed=done / _MEGABYTE)
        if writer.num_documents < 2:
            raise ElmoTasksError(_too_few_documents(paths, writer.num_documents))
        return choose_held_out(writer.num_documents, held_out, seed)

    return _prepare(key, {"files": [str(file) for file in files], **settings}, write)


def prepare_tokens(training: Iterable[Document], held_out: Iterable[Document], key: str) -> Path:
    """The folder of the corpus that some documents in memory make, prepared now or earlier.

    Arguments:
        training: documents of sentences of tokens; read once, and not at all if the corpus is there already.
        held_out: likewise.
        key: names the content: another content has to have another key.

    Raises:
        ElmoTasksError: one of the parts has no token.
        CacheError: the cache's folder cannot be written, or is full.
    """

    def write(writer: CorpusWriter) -> HeldOutRule:
        for chunk in _chunks_of_documents(training):
            writer.add(chunk)
        num_training = writer.num_documents
        for chunk in _chunks_of_documents(held_out):
            writer.add(chunk)
        if not 0 < num_training < writer.num_documents:
            empty = "held-out" if num_training else "training"
            raise ElmoTasksError(f"{key}: the {empty} part holds no token; wanted text to train on and text held out")
        return lambda documents: documents >= num_training

    return _prepare({"key": key}, {"key": key}, write)


def choose_held_out(num_documents: int, share: float, seed: int) -> HeldOutRule:
    """The rule that holds out a share of the documents at random: at least one document, and never all.

    Arguments:
        num_documents: how many there are, at least 2.
        share: the probability of each to be held out.
        seed: which ones.
    """
    limit = np.uint64(share * 2.0**64)
    smallest, largest = np.uint64(2**64 - 1), np.uint64(0)
    for first in range(0, num_documents, 1 << 20):
        values = _random_bits(np.arange(first, min(first + (1 << 20), num_documents)), seed)
        smallest, largest = min(smallest, values.min()), max(largest, values.max())
    # The values of different documents differ, so that exactly one is the smallest.
    limit = min(max(limit, smallest), largest - np.uint64(1))
    return lambda documents: _random_bits(documents, seed) <= limit


def _random_bits(numbers: npt.NDArray[np.integer], seed: int) -> npt.NDArray[np.uint64]:
    """SplitMix64 (Steele et al. 2014): 64 bits that look random for each number, different for different numbers."""
    start = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little")
    bits = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.full(1, start, np.uint64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _prepare(key: dict[str, Any], description: dict[str, Any], write: Callable[[CorpusWriter], HeldOutRule]) -> Path:
    """The folder for a key; if it is not there, what `write` adds is made a corpus by the rule that it returns."""
    name = hashlib.sha256(json.dumps([_VERSION, key]).encode()).hexdigest()
    folder = cache_folder() / "corpora" / name
    if is_intact(folder):
        logger.debug("the corpus is read from %s", folder)
        return folder
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        with write_errors(folder.parent):
            remove_damaged(folder)
            temporary = stack.enter_context(atomic_folder(folder))
        writer = stack.enter_context(CorpusWriter(temporary))
        writer.finish(write(writer), {"version": _VERSION, **description})
    logger.info("%s; prepared in %.1f s: %s", writer.summary(), time.monotonic() - begin, folder)
    return folder


class _Job(NamedTuple):
    """The work on a chunk."""

    num_bytes: int  # of the file on disk
    run: Callable[[], TokenizedChunk]


def _jobs(files: Sequence[Path], tokenized: bool, deduplicate: bool) -> Iterator[_Job]:
    seen: set[bytes] = set()
    for file in files:
        lines_are_documents = not separates_documents(file)
        chunks = read_chunks(file)
        if deduplicate:
            chunks = without_repeated_lines(chunks, seen)
        for chunk in chunks:
            yield _Job(chunk.num_bytes, partial(tokenize_chunk, chunk, tokenized, lines_are_documents))


def _in_parallel(jobs: Iterable[_Job], workers: int) -> Generator[tuple[int, TokenizedChunk], None, None]:
    """The bytes and results in the order of the jobs; only a few jobs are under way or waiting at any time."""
    if workers == 1:
        for job in jobs:
            yield job.num_bytes, job.run()
        return
    executor = ProcessPoolExecutor(workers, _process_context(), begin_worker)
    waiting: deque[tuple[int, Future[TokenizedChunk]]] = deque()
    try:
        for job in jobs:
            waiting.append((job.num_bytes, executor.submit(job.run)))
            if len(waiting) > 2 * workers:
                num_bytes, future = waiting.popleft()
                yield num_bytes, future.result()
        for num_bytes, future in waiting:
            yield num_bytes, future.result()
    except BrokenProcessPool:
        raise ElmoTasksError(
            "a process that tokenizes was ended from outside, perhaps for want of memory: try fewer workers"
            " (a script that prepares a corpus needs `if __name__ == '__main__':` around what it does)"
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)


def _process_context() -> BaseContext:
    """Processes that never copy this one, which may hold a model and threads."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # What the server has imported is in the memory that all processes share.
    context.set_forkserver_preload([tokenize_chunk.__module__])
    return context


def _content_hash(file: Path) -> str:
    try:
        return content_hash(file)
    except OSError as error:
        raise DataError(file, f"cannot be read ({error.strerror})") from None


def _num_cpus() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _chunks_of_documents(documents: Iterable[Document]) -> Iterator[TokenizedChunk]:
    builder = ChunkBuilder()
    for document in documents:
        builder.begin_document()
        for sentence in document:
            builder.add_sentence(sentence)
            if builder.num_tokens >= _TOKENS_AT_ONCE:
                yield builder.build()
                builder = ChunkBuilder()
    yield builder.build()


def _too_few_documents(paths: Sequence[str], num_documents: int) -> str:
    came = "a single document" if num_documents else "no text"
    return (
        f"{', '.join(paths)}: holds {came}; wanted at least two documents, one to train on and one to hold out"
        " (blank lines separate documents; where there are none, every line is a document)"
    )
