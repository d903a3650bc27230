"""From tokenized chunks to the files of a corpus, in memory that does not grow with the text.

While chunks come in, distinct tokens are numbered in the order in which they are first seen, and everything is written
to provisional files. When all is known, two passes over those, in pieces, count the training part's tokens, number
them anew by frequency, and divide the documents.
"""

# N tokens, S sentences, D documents of one piece; V distinct tokens ("types")

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmo_tasks.errors import CacheError
from elmo_tasks.pretraining.corpus_files import (
    COUNTS,
    DOCUMENTS,
    SENTENCES,
    TOKENS,
    ArrayWriter,
    PartWriter,
    read_array,
    read_slice,
    write_description,
    write_types,
)
from elmo_tasks.pretraining.tokenized_chunk import TokenizedChunk

# Which of the documents, given by their running numbers, are held out.
HeldOutRule = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]

_SENTENCES_AT_ONCE = 1 << 17


@contextlib.contextmanager
def write_errors(folder: Path, wanted: int | None = None) -> Iterator[None]:
    """Says in one line why a folder cannot be written, and how many bytes are wanted there, where that is known."""
    try:
        yield
    except OSError as error:
        advice = "set ELMO_TASKS_CACHE to a folder elsewhere"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            estimate = f", of about {wanted / 1e6:,.0f} MB that are wanted in all" if wanted else ""
            raise CacheError(f"{folder}: no room is left on this disk{estimate}; free some, or {advice}") from error
        raise CacheError(f"{folder}: cannot be written ({error.strerror}); {advice}") from error


class _Piece(NamedTuple):
    """Consecutive sentences of the provisional files."""

    tokens: npt.NDArray[np.uint32]  # (N,)
    lengths: npt.NDArray[np.int64]  # (S,)
    is_first: npt.NDArray[np.bool_]  # (S,), whether the sentence begins a document
    is_held_out: npt.NDArray[np.bool_]  # (S,)

    def add_to(self, part: PartWriter, held_out: bool, new_numbers: npt.NDArray[np.uint32]) -> None:
        """Appends the sentences that belong to a part to it, with their tokens' new numbers."""
        chosen = self.is_held_out == held_out
        part.add(new_numbers[self._tokens_of(chosen)], self.lengths[chosen], self.is_first[chosen])

    def counts(self, num_types: int) -> npt.NDArray[np.int64]:
        """How often each type occurs in the sentences that are not held out, (V,)."""
        return np.bincount(self._tokens_of(~self.is_held_out), minlength=num_types)

    def _tokens_of(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
        return self.tokens[np.repeat(chosen, self.lengths)]


class CorpusWriter(contextlib.AbstractContextManager["CorpusWriter"]):
    """Writes a corpus into an empty folder: `add` every chunk in order, then `finish`.

    Raises:
        CacheError: from each method, if the folder cannot be written, or its disk is full.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[str, int] = {}
        with write_errors(folder.parent):
            self._provisional = PartWriter(folder / "provisional")
        self._document_begins = False

    def __exit__(self, *_: object) -> None:
        # `finish` has closed the files already; after a failure nobody wants what could not be written.
        with contextlib.suppress(OSError):
            self._provisional.__exit__()

    def add(self, chunk: TokenizedChunk, share: float | None = None) -> None:
        """Appends a chunk.

        Arguments:
            chunk: the sentences.
            share: how much of the corpus has come with this chunk and those before it, where that is known.
        """
        num_sentences = len(chunk.lengths)
        is_first = np.zeros(num_sentences + 1, dtype=bool)
        is_first[0] = self._document_begins
        is_first[chunk.borders] = True
        # What begins behind the chunk's last sentence begins with the next chunk; without sentences in between that
        # is no document.
        self._document_begins = bool(is_first[-1])
        numbers = self._numbers
        new_numbers = [numbers.setdefault(token, len(numbers)) for token in chunk.types]
        tokens = np.array(new_numbers, dtype=np.uint32)[chunk.tokens]
        with write_errors(self._folder.parent, int(2 * self._provisional.num_bytes / share) if share else None):
            self._provisional.add(tokens, chunk.lengths, is_first[:-1])

    @property
    def num_documents(self) -> int:
        """The number of documents so far; those without a token do not count."""
        return self._provisional.num_documents

    def summary(self) -> str:
        """How much there is, for the log."""
        part = self._provisional
        return (
            f"{part.num_tokens:,} tokens ({len(self._numbers):,} distinct) in {part.num_sentences:,} sentences of"
            f" {part.num_documents:,} documents"
        )

    def finish(self, rule: HeldOutRule, description: dict[str, Any]) -> None:
        """Numbers the types by frequency, divides the documents by the rule, and writes everything that is left."""
        with write_errors(self._folder.parent, 2 * self._provisional.num_bytes):
            self._provisional.finish()
            self._write_parts(rule)
            shutil.rmtree(self._folder / "provisional")
            write_description(self._folder, description)

    def _write_parts(self, rule: HeldOutRule) -> None:
        types = list(self._numbers)
        counts = np.zeros(len(types), dtype=np.int64)
        for piece in self._pieces(rule):
            counts += piece.counts(len(types))
        order = _by_frequency(types, counts)
        new_numbers = np.empty(len(types), dtype=np.uint32)
        new_numbers[order] = np.arange(len(types), dtype=np.uint32)
        with PartWriter(self._folder / "training") as training, PartWriter(self._folder / "held_out") as held_out:
            for piece in self._pieces(rule):
                piece.add_to(training, False, new_numbers)
                piece.add_to(held_out, True, new_numbers)
            training.finish()
            held_out.finish()
        write_types(self._folder, types, order)
        with ArrayWriter(self._folder / COUNTS) as stream:
            stream.write(counts[order])

    def _pieces(self, rule: HeldOutRule) -> Iterator[_Piece]:
        """The provisional files, some sentences at a time."""
        folder = self._folder / "provisional"
        document_starts = read_array(folder / DOCUMENTS)
        num_sentences = self._provisional.num_sentences
        for first in range(0, num_sentences, _SENTENCES_AT_ONCE):
            last = min(first + _SENTENCES_AT_ONCE, num_sentences)
            sentences = np.arange(first, last)
            starts = read_slice(folder / SENTENCES, first, last + 1)
            documents = np.searchsorted(document_starts, sentences, side="right") - 1
            yield _Piece(
                tokens=read_slice(folder / TOKENS, starts[0], starts[-1]),
                lengths=np.diff(starts),
                is_first=document_starts[documents] == sentences,
                is_held_out=rule(documents),
            )


def _by_frequency(types: list[str], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """The places of the types, the most frequent first, ties in alphabetical order."""
    alphabetical = np.array(sorted(range(len(types)), key=types.__getitem__), dtype=np.intp)
    return alphabetical[np.argsort(-counts[alphabetical], kind="stable")]
