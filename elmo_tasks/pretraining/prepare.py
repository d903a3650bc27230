"""Prepares a corpus: text to numbered tokens on disk, in several processes, streaming, once.

The result depends only on the text and the settings, not on the number of processes or the borders of chunks.
The worker processes import this module: it imports neither torch nor anything else that is slow or large.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import multiprocessing
import os
import shutil
import signal
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files import atomic_folder, cache_folder, content_hash
from elmo_tasks.pretraining.corpus import Corpus, CorpusPart, CorpusWriter, NumberedText, write_errors
from elmo_tasks.pretraining.text_files import (
    Chunk,
    find_files,
    read_chunks,
    separates_documents,
    without_repeated_lines,
)
from elmo_tasks.progress import progress_bar
from elmo_tasks.text import tokenization

logger = logging.getLogger(__name__)

Document = Iterable[Sequence[str]]
_Result = TypeVar("_Result")

# To be raised whenever the files of a corpus or the choice of held-out documents change.
_VERSION = 2

_MEGABYTE = 1_000_000
_SENTENCES_AT_ONCE = 10_000
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
) -> Corpus:
    """The corpus of some text files, prepared now or earlier; see `TextCorpus`."""
    files = find_files(paths)
    settings = {"tokenized": tokenized, "deduplicate": deduplicate, "held_out": held_out, "seed": seed}
    tokenizer = None if tokenized else tokenization.VERSION
    key = {**settings, "tokenizer": tokenizer, "content": [_content_hash(file) for file in files]}
    num_bytes = sum(file.stat().st_size for file in files)
    num_workers = 1 if num_bytes < _MIN_PARALLEL_BYTES else workers or _num_cpus()

    def write(writer: CorpusWriter) -> npt.NDArray[np.bool_]:
        done = 0
        results = _in_processes(_tokenizations(files, tokenized, deduplicate), num_workers)
        with contextlib.closing(results), progress_bar() as progress:
            bar = progress.add_task("preparing the corpus (MB)", total=num_bytes / _MEGABYTE, note="")
            for size, text in results:
                done += size
                writer.add(text, done / num_bytes)
                progress.update(bar, completed=done / _MEGABYTE)
        if writer.num_documents < 2:
            came = "a single document" if writer.num_documents else "no text"
            raise ElmoTasksError(
                f"{', '.join(paths)}: holds {came}; wanted at least two documents, one to train on and one to hold out"
                " (blank lines separate documents; where there are none, every line is a document)"
            )
        return choose_held_out(writer.num_documents, held_out, seed)

    return _prepare(key, {"files": [str(file) for file in files], **settings}, write)


def prepare_documents(training: Iterable[Document], held_out: Iterable[Document], key: str) -> Corpus:
    """The corpus of documents that are tokenized already, for example a data set's, prepared now or earlier.

    Arguments:
        training: documents, each an iterable of sentences, each a sequence of tokens. They are streamed, and not read
            at all if the cache has the key.
        held_out: the same, for the part to evaluate on.
        key: names the content: another content must have another key.

    Raises:
        ElmoTasksError: one of the parts has no token.
        CacheError: the cache's folder cannot be written, or its disk is full.
    """

    def write(writer: CorpusWriter) -> npt.NDArray[np.bool_]:
        ends = []
        for documents in (training, held_out):
            sentences = _with_borders(documents)
            while some := list(itertools.islice(sentences, _SENTENCES_AT_ONCE)):
                writer.add(number_tokens(some))
            ends.append(writer.num_documents)
        if not 0 < ends[0] < ends[1]:
            empty = "held-out" if ends[0] else "training"
            raise ElmoTasksError(f"{key}: the {empty} part holds no token; wanted text to train on and text held out")
        return np.arange(ends[1]) >= ends[0]

    return _prepare({"key": key}, {"key": key}, write)


def read_text(paths: Sequence[str], *, tokenized: bool) -> tuple[CorpusPart, list[str]]:
    """The sentences of text files as one document, in memory, and the distinct tokens that their numbers stand for.

    Arguments:
        paths: files or globs, compressed or not.
        tokenized: a line is a sentence with white space between its tokens; otherwise it is a paragraph of raw text.

    Raises:
        DataError: a file is missing, damaged or not UTF-8 text, or no file has a token.
    """
    chunks = (chunk for file in find_files(paths) for chunk in read_chunks(file))
    text = number_tokens(sentence for chunk in chunks for sentence in _split(chunk, tokenized))
    if not text.types:
        raise DataError(", ".join(paths), "holds no text; wanted at least one sentence")
    sentences = np.concatenate([[0], np.cumsum(text.lengths, dtype=np.int64)])  # (S + 1,)
    return CorpusPart(text.tokens, sentences, np.array([0, len(text.lengths)])), text.types


def choose_held_out(num_documents: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Which documents are held out, (D,): a share of them at random, at least one document, and never all.

    Arguments:
        num_documents: D, at least 2.
        share: how many of them, from 0 to 1.
        seed: which ones.
    """
    number = min(max(1, round(share * num_documents)), num_documents - 1)
    is_held_out = np.zeros(num_documents, dtype=bool)
    is_held_out[np.random.default_rng(seed).choice(num_documents, number, replace=False)] = True
    return is_held_out


def number_tokens(sentences: Iterable[Sequence[str] | None]) -> NumberedText:
    """Numbers the tokens of sentences; None stands where a document begins. Sentences without tokens are left out."""
    numbers: dict[str, int] = {}
    tokens, lengths, documents = array("I"), array("I"), array("q")
    num_begun = 0
    for sentence in sentences:
        if sentence is None:
            num_begun += 1
        elif sentence:
            tokens.extend([numbers.setdefault(token, len(numbers)) for token in sentence])
            lengths.append(len(sentence))
            documents.append(num_begun)
    return NumberedText(list(numbers), np.array(tokens), np.array(lengths), np.array(documents), num_begun)


def tokenize_chunk(chunk: Chunk, tokenized: bool, lines_are_documents: bool) -> tuple[int, NumberedText]:
    """The size of a chunk in bytes on disk, and its sentences.

    Arguments:
        chunk: whole lines of a file.
        tokenized: a line is a sentence with white space between its tokens; otherwise it is a paragraph of raw text.
        lines_are_documents: every line is a document; otherwise blank lines separate documents.
    """
    return chunk.num_bytes, number_tokens(_split(chunk, tokenized, lines_are_documents))


def _split(chunk: Chunk, tokenized: bool, lines_are_documents: bool = False) -> Iterator[Sequence[str] | None]:
    """A chunk's sentences, and None where a document begins."""
    if chunk.is_first:
        yield None
    for line in chunk.lines:
        if lines_are_documents or not line.strip():
            yield None
        if tokenized:
            yield line.split()
        else:
            yield from tokenization.tokenize_to_strings(line)


def _with_borders(documents: Iterable[Document]) -> Iterator[Sequence[str] | None]:
    """The sentences of documents, with None before each document."""
    for document in documents:
        yield None
        yield from document


def _prepare(
    key: dict[str, Any], description: dict[str, Any], write: Callable[[CorpusWriter], npt.NDArray[np.bool_]]
) -> Corpus:
    """The corpus for a key. If it is not there, `write` adds its sentences and says which documents are held out."""
    name = hashlib.sha256(json.dumps([_VERSION, key]).encode()).hexdigest()
    folder = cache_folder() / "corpora" / name
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        with write_errors(folder.parent):
            if folder.exists():
                try:
                    return Corpus(folder)
                except (OSError, EOFError, ValueError):
                    logger.warning("%s: the prepared corpus is damaged and is made anew", folder)
                    shutil.rmtree(folder)
            temporary = stack.enter_context(atomic_folder(folder))
        writer = CorpusWriter(temporary)
        writer.finish(write(writer), {"version": _VERSION, **description})
    logger.info("%s; prepared in %.1f s: %s", writer.summary(), time.monotonic() - begin, folder)
    return Corpus(folder)


def _tokenizations(
    files: Sequence[Path], tokenized: bool, deduplicate: bool
) -> Iterator[Callable[[], tuple[int, NumberedText]]]:
    """The work on each chunk, in order."""
    seen: set[bytes] = set()
    for file in files:
        lines_are_documents = not separates_documents(file)
        chunks = read_chunks(file)
        for chunk in without_repeated_lines(chunks, seen) if deduplicate else chunks:
            yield partial(tokenize_chunk, chunk, tokenized, lines_are_documents)


def _in_processes(jobs: Iterable[Callable[[], _Result]], workers: int) -> Generator[_Result, None, None]:
    """The results in the order of the jobs; only a few jobs are under way or waiting at any time."""
    if workers == 1:
        yield from (job() for job in jobs)
        return
    executor = ProcessPoolExecutor(workers, _process_context(), _begin_worker)
    waiting: deque[Future[_Result]] = deque()
    try:
        for job in jobs:
            waiting.append(executor.submit(job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise ElmoTasksError(
            "a process that tokenizes was ended from outside, perhaps because memory ran out: try fewer workers"
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
    context.set_forkserver_preload([__name__])
    return context


def _begin_worker() -> None:
    """Lets a worker process end only with the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when the one that started it was killed; otherwise it would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker was started by a process"
    parent.join()
    os._exit(1)


def _content_hash(file: Path) -> str:
    try:
        return content_hash(file)
    except OSError as error:
        raise DataError(file, f"cannot be read ({error.strerror})") from None


def _num_cpus() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
