"""The prepared corpus: numbered tokens on disk, written in pieces and read memory-mapped.

A corpus's folder holds

    corpus.json                       what it was made of
    types.json                        the distinct tokens, a list of strings
    counts.npy                        how often each of them occurs in the training part
    training/, held_out/              the parts, each with
        tokens.npy                    the tokens as numbers of types, one sentence after another
        sentences.npy, documents.npy  where each sentence begins in the tokens, each document in the sentences;
                                      the end of the last one is added
"""

# N tokens, S sentences, D documents, V distinct tokens ("types")

from __future__ import annotations

import dataclasses
import json
import os
import tokenize
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from elmo_tasks.errors import counted
from elmo_tasks.extras.pretraining.tokenize_files import NumberedText
from elmo_tasks.files.atomic import write_errors
from elmo_tasks.files.json_files import write_json

_TYPES, _COUNTS, _TRAINING, _HELD_OUT = "types.json", "counts.npy", "training", "held_out"
_SENTENCES_AT_ONCE = 1 << 17


@dataclasses.dataclass(frozen=True)
class CorpusPart:
    """Tokens, sentences and documents.

    Attributes:
        tokens: the numbers of the types, one sentence after another without borders, (N,) uint32.
        sentences: where each sentence begins in `tokens`, and N, (S + 1,) int64.
        documents: where each document begins in `sentences`, and S, (D + 1,) int64.
    """

    tokens: npt.NDArray[np.uint32]
    sentences: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]

    @classmethod
    def of(cls, text: NumberedText) -> CorpusPart:
        """The sentences of a text in memory, as one document."""
        sentences = np.append(0, np.cumsum(text.lengths, dtype=np.int64))  # (S + 1,)
        return cls(text.tokens, sentences, np.array([0, len(text.lengths)]))

    @classmethod
    def load(cls, folder: Path) -> CorpusPart:
        """Maps the files of a part; errors are those of `Corpus`."""
        return cls(*(_mapped(folder / f"{name}.npy") for name in ("tokens", "sentences", "documents")))


class Corpus:
    """A prepared corpus in its folder in the cache, memory-mapped except for its types.

    Attributes:
        types: the distinct tokens of both parts, those most frequent in the training part first, ties in alphabetical
            order.
        counts: how often each occurs in the training part, (V,) int64.
        training, held_out: the parts to train on and to evaluate on; no document is in both.

    Raises:
        OSError, EOFError, ValueError: a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.types: list[str] = json.loads((folder / _TYPES).read_bytes())
        self.counts: npt.NDArray[np.int64] = _mapped(folder / _COUNTS)
        if len(self.types) != len(self.counts):
            raise ValueError(f"{folder}: its files do not fit together")
        self.training = CorpusPart.load(folder / _TRAINING)
        self.held_out = CorpusPart.load(folder / _HELD_OUT)


class CorpusWriter:
    """Writes a corpus into an empty folder: `add` all sentences in order, then `finish`.

    `finish` numbers the types by frequency. Memory: the types and ten bytes per sentence. Both raise `WriteError` if
    the folder cannot be written, or its disk is full.
    """

    def __init__(self, folder: Path) -> None:
        self.num_documents = 0  # those without a token do not count
        self._folder = folder
        self._provisional = folder / "provisional"
        self._numbers: dict[str, int] = {}
        self._lengths = array("I")
        self._begins_document = bytearray()  # a bool for each sentence
        self._num_begun = self._document_of_last = 0
        self._num_bytes = 0

    def add(self, text: NumberedText, share: float | None = None) -> None:
        """Appends sentences; `share` is how much of the corpus has come with these, where that is known."""
        documents = self._num_begun + text.documents
        begins_document = np.diff(documents, prepend=self._document_of_last) > 0
        self._lengths.frombytes(text.lengths.tobytes())
        self._begins_document += begins_document.tobytes()
        self.num_documents += int(begins_document.sum())
        self._num_begun += text.num_begun
        if len(documents):
            self._document_of_last = int(documents[-1])
        numbers = self._numbers
        types = np.array([numbers.setdefault(token, len(numbers)) for token in text.types], dtype=np.uint32)
        tokens = types[text.tokens]
        self._num_bytes += tokens.nbytes
        needed = round(2 * self._num_bytes / share) if share else None
        with write_errors(self._folder, needed), open(self._provisional, "ab") as stream:
            _write(stream, tokens)

    def summary(self) -> str:
        """How much there is, for the log."""
        return (
            f"{counted(self._num_bytes // 4, 'token')} ({len(self._numbers):,} distinct) in"
            f" {counted(len(self._lengths), 'sentence')} of {counted(self.num_documents, 'document')}"
        )

    def finish(self, is_held_out: npt.NDArray[np.bool_], description: dict[str, Any]) -> None:
        """Writes the corpus, with `is_held_out` of each document that has a token, (D,), and the `corpus.json`."""
        documents = np.flatnonzero(np.frombuffer(self._begins_document, dtype=bool))  # (D,)
        sentence_is_held_out = np.repeat(is_held_out, np.diff(documents, append=len(self._lengths)))  # (S,)
        with write_errors(self._folder, 2 * self._num_bytes):
            counts = np.zeros(len(self._numbers), dtype=np.int64)
            for tokens in self._pieces(~sentence_is_held_out):
                counts += np.bincount(tokens, minlength=len(counts))
            types = list(self._numbers)
            order = np.array(sorted(range(len(types)), key=types.__getitem__), dtype=np.intp)
            order = order[np.argsort(-counts[order], kind="stable")]
            new_numbers = np.empty(len(types), dtype=np.uint32)
            new_numbers[order] = np.arange(len(types), dtype=np.uint32)
            self._write_part(_TRAINING, ~sentence_is_held_out, new_numbers)
            self._write_part(_HELD_OUT, sentence_is_held_out, new_numbers)
            self._provisional.unlink()
            _write_array(self._folder / _COUNTS, np.int64, len(counts), [counts[order]])
            # As ASCII with escapes, which can also hold halves of surrogate pairs.
            (self._folder / _TYPES).write_text(json.dumps([types[index] for index in order]), encoding="ascii")
            write_json(self._folder / "corpus.json", description)

    def _write_part(self, name: str, chosen: npt.NDArray[np.bool_], new_numbers: npt.NDArray[np.uint32]) -> None:
        """Writes the part with the chosen sentences."""
        folder = self._folder / name
        folder.mkdir()
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)[chosen]
        documents = np.flatnonzero(np.frombuffer(self._begins_document, dtype=bool)[chosen])
        pieces = (new_numbers[tokens] for tokens in self._pieces(chosen))
        _write_array(folder / "tokens.npy", np.uint32, int(lengths.sum(dtype=np.int64)), pieces)
        _write_array(folder / "sentences.npy", np.int64, len(lengths) + 1, _borders(lengths))
        _write_array(folder / "documents.npy", np.int64, len(documents) + 1, [documents, np.array([len(lengths)])])

    def _pieces(self, chosen: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.uint32]]:
        """The provisional numbers of the chosen sentences' tokens, some sentences at a time."""
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)
        with open(self._provisional, "rb") as stream:
            for start in range(0, len(lengths), _SENTENCES_AT_ONCE):
                piece = slice(start, start + _SENTENCES_AT_ONCE)
                is_chosen = np.repeat(chosen[piece], lengths[piece])  # (tokens of the piece,)
                yield np.fromfile(stream, dtype=np.uint32, count=len(is_chosen))[is_chosen]


def _mapped(path: Path) -> npt.NDArray[Any]:
    """A memory-mapped list of numbers. The header is read as Python, which may not be Python if it is damaged."""
    try:
        return cast("npt.NDArray[Any]", np.load(path, mmap_mode="r"))
    except (SyntaxError, TypeError, tokenize.TokenError) as error:
        raise ValueError(f"{path}: {error}") from error


def _borders(lengths: npt.NDArray[np.uint32]) -> Iterator[npt.NDArray[np.int64]]:
    """Where each sentence begins and the last one ends, some sentences at a time."""
    borders = np.zeros(1, dtype=np.int64)
    yield borders
    for start in range(0, len(lengths), _SENTENCES_AT_ONCE):
        borders = borders[-1] + np.cumsum(lengths[start : start + _SENTENCES_AT_ONCE], dtype=np.int64)
        yield borders


def _write_array(path: Path, kind: type[np.generic], length: int, pieces: Iterable[npt.NDArray[Any]]) -> None:
    """Writes a .npy file in pieces. (`np.save` does not say that a disk is full.)"""
    header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (length,)}
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for piece in pieces:
            _write(stream, piece.astype(kind, copy=False))
        stream.flush()
        os.fsync(stream.fileno())


def _write(stream: IO[bytes], values: npt.NDArray[Any]) -> None:
    stream.write(values.data)
