"""Text files to sentences of numbered tokens, in several processes.

The worker processes import this module: it imports neither torch nor anything else that is slow or large.
"""

# N tokens, S sentences, D documents

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.paths import is_stream, why_no_file
from elmo_tasks.files.text import decode_lines, decompressed
from elmo_tasks.text.tokenizers import Tokenizer

_CHUNK_CHARACTERS = 1 << 20


class Chunk(NamedTuple):
    """Consecutive whole lines of a file."""

    lines: list[str]  # without the line ends
    num_bytes: int  # read for it from the file on disk
    is_first: bool  # whether the file begins here


def read_chunks(path: Path) -> Iterator[Chunk]:
    """Streams a UTF-8 text file, which is decompressed if its name ends in .gz, .xz, .bz2 or .zip.

    Raises:
        DataError: the file is missing, damaged or not UTF-8 text, or a line is too long; the line is named.
    """
    if not path.is_file() and not is_stream(path):
        raise DataError(path, why_no_file(path))
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        numbered, position, is_first = decode_lines(stream, path), 0, True
        while lines := _next_lines(numbered, path):
            end = raw.tell() if raw.seekable() else position
            yield Chunk(lines, end - position, is_first)
            position, is_first = end, False


def _next_lines(numbered: Iterator[tuple[int, str]], path: Path) -> list[str]:
    """The next lines of a file, which have about as many characters as a chunk; none at its end."""
    lines: list[str] = []
    size = 0
    for number, line in numbered:
        if "\0" in line:
            raise DataError(path, "holds a NUL byte, as binary files do; expected UTF-8 text", number)
        lines.append(line)
        size += len(line) + 1
        if size >= _CHUNK_CHARACTERS:
            break
    return lines


def text_lines(path: Path) -> Iterator[str]:
    """Streams the lines of a file; see `read_chunks`."""
    return (line for chunk in read_chunks(path) for line in chunk.lines)


def separates_documents(path: Path) -> bool:
    """Whether a file has a blank line between two lines of text: then blank lines separate its documents."""
    runs = itertools.groupby(text_lines(path), key=lambda line: bool(line.strip()))
    texts = (is_text for is_text, _ in runs if is_text)
    return next(itertools.islice(texts, 1, None), False)


class NumberedText(NamedTuple):
    """Consecutive sentences, their tokens as numbers."""

    types: list[str]  # the distinct tokens, in the order in which they were first seen
    tokens: npt.NDArray[np.uint32]  # (N,) each token's index in `types`
    lengths: npt.NDArray[np.uint32]  # (S,) the number of tokens of each sentence
    documents: npt.NDArray[np.int64]  # (S,) how many documents begin here up to a sentence; 0 in an earlier document
    num_begun: int  # how many documents begin here, some of them perhaps without a sentence
    num_bytes: int  # read for it from a file


def number_tokens(sentences: Iterable[Sequence[str] | None], num_bytes: int = 0) -> NumberedText:
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
    return NumberedText(list(numbers), np.array(tokens), np.array(lengths), np.array(documents), num_begun, num_bytes)


def tokenize_files(
    files: Iterable[Path], tokenizer: Tokenizer, *, workers: int | None = None
) -> Generator[NumberedText, None, None]:
    """The sentences of text files in order, a chunk at a time; see `TextCorpus`.

    Arguments:
        workers: the number of processes; by default one per CPU that this process may use. Close the generator to end
            them early.

    Raises:
        DataError: a file is missing, damaged or not UTF-8 text.
        ElmoTasksError: a process was ended from outside.
    """

    def jobs() -> Iterator[Callable[[], NumberedText]]:
        for file in files:
            lines_are_documents = not separates_documents(file)
            for chunk in read_chunks(file):
                yield partial(_tokenize_chunk, chunk, tokenizer, lines_are_documents)

    return in_processes(jobs(), workers)


def _tokenize_chunk(chunk: Chunk, tokenizer: Tokenizer, lines_are_documents: bool) -> NumberedText:
    def sentences() -> Iterator[Sequence[str] | None]:
        if chunk.is_first:
            yield None
        for line in chunk.lines:
            if lines_are_documents or not line.strip():
                yield None
            yield from tokenizer.strings(line)

    return number_tokens(sentences(), chunk.num_bytes)


def num_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(
    jobs: Iterable[Callable[[], NumberedText]], workers: int | None = None
) -> Generator[NumberedText, None, None]:
    """The results in the order of the jobs; only a few jobs run or wait at any time. See `tokenize_files`."""
    workers = workers or num_processors()
    if workers == 1:
        yield from (job() for job in jobs)
        return
    # Processes that do not copy this one, which may hold a model and threads.
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin_worker)
    waiting: deque[Future[NumberedText]] = deque()
    try:
        for job in jobs:
            waiting.append(executor.submit(job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise ElmoTasksError(
            "a tokenizing process was killed, perhaps because memory ran out; try fewer workers"
            " (a script that prepares a corpus needs `if __name__ == '__main__':` around what it does)"
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Lets a worker process end only with the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when the one that started it was killed; otherwise it would wait forever."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
