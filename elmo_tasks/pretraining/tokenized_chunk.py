"""The work on one chunk of a corpus, done in a process of its own: text to sentences of numbered tokens.

This module is all that the worker processes import: neither torch nor anything else that is slow or large.
"""

# N tokens, S sentences, D documents, all of this chunk

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import threading
from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmo_tasks.pretraining.corpora import Chunk
from elmo_tasks.text.tokenization import tokenize_to_strings


@dataclasses.dataclass(frozen=True, slots=True)
class TokenizedChunk:
    """A chunk's tokens as numbers.

    Attributes:
        types: the distinct tokens, in the order in which they were first seen.
        tokens: each token's place in `types`, (N,).
        lengths: the number of tokens of each sentence, (S,).
        borders: at which sentences, from 0 to S, a document begins; a place may come several times.
    """

    types: list[str]
    tokens: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.uint32]
    borders: npt.NDArray[np.uint32]


class ChunkBuilder:
    """Collects sentences into a `TokenizedChunk`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._tokens = array("I")
        self._lengths = array("I")
        self._borders = array("I")

    @property
    def num_tokens(self) -> int:
        """The number of tokens so far."""
        return len(self._tokens)

    def begin_document(self) -> None:
        """The sentences that are added from here on belong to a new document."""
        self._borders.append(len(self._lengths))

    def add_sentence(self, tokens: Sequence[str]) -> None:
        """Adds a sentence; one without tokens is left out."""
        if tokens:
            numbers = self._numbers
            self._tokens.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
            self._lengths.append(len(tokens))

    def build(self) -> TokenizedChunk:
        """What has been collected."""
        tokens, lengths, borders = (
            np.array(values, dtype=np.uint32) for values in (self._tokens, self._lengths, self._borders)
        )
        return TokenizedChunk(list(self._numbers), tokens, lengths, borders)


def begin_worker() -> None:
    """Makes the life of a process that tokenizes depend on the one that started it alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when the one that started it was killed, which would leave it waiting for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has been started by a process"
    parent.join()
    os._exit(1)


def tokenize_chunk(chunk: Chunk, tokenized: bool, lines_are_documents: bool) -> TokenizedChunk:
    """Splits a chunk into sentences and tokens.

    Arguments:
        chunk: whole lines of a file.
        tokenized: a line is a sentence with white space between its tokens; otherwise it is a paragraph of raw text.
        lines_are_documents: every line is a document; otherwise blank lines separate documents.
    """
    builder = ChunkBuilder()
    if chunk.is_first:
        builder.begin_document()
    for number, line in enumerate(chunk.lines()):
        if lines_are_documents or not line.strip():
            builder.begin_document()
        if number in chunk.repeated:
            continue
        if tokenized:
            builder.add_sentence(line.split())
        else:
            for sentence in tokenize_to_strings(line):
                builder.add_sentence(sentence)
    return builder.build()
