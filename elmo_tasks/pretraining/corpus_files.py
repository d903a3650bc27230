"""The files of a prepared corpus: arrays that are written piece by piece and read memory-mapped.

A corpus's folder holds

    corpus.json                              what it was made of, and the size of every other file
    types.txt, type_starts.int64             the distinct tokens in UTF-8 one behind the other, and where each begins
    counts.int64                             how often each occurs in the training part
    training/, held_out/                     the parts, each with
        tokens.uint32                        the tokens as numbers of types, one behind the other
        sentences.int64, documents.int64     where each sentence begins in the tokens, each document in the sentences

Numbers are little-endian, without a header; arrays of beginnings have the end of the last as one entry more.
"""

# N tokens, S sentences, D documents, V distinct tokens ("types")

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from elmo_tasks.files import write_json

logger = logging.getLogger(__name__)

TOKENS = "tokens.uint32"
SENTENCES = "sentences.int64"
DOCUMENTS = "documents.int64"
COUNTS = "counts.int64"
TYPES = "types.txt"
TYPE_STARTS = "type_starts.int64"
DESCRIPTION = "corpus.json"

_TYPES_AT_ONCE = 1 << 16


def read_array(path: Path) -> npt.NDArray[Any]:
    """A file of numbers, memory-mapped; its ending says of which kind they are."""
    return np.memmap(path, dtype=np.dtype(path.suffix[1:]).newbyteorder("<"), mode="r")


def read_slice(path: Path, first: int, last: int) -> npt.NDArray[Any]:
    """The numbers from `first` to `last`, exclusive, in memory of their own, which is given back after use."""
    kind = np.dtype(path.suffix[1:]).newbyteorder("<")
    return np.fromfile(path, dtype=kind, count=last - first, offset=first * kind.itemsize)


class ArrayWriter(contextlib.AbstractContextManager["ArrayWriter"]):
    """Writes a file of numbers piece by piece; its ending says of which kind they are."""

    def __init__(self, path: Path) -> None:
        self._kind = np.dtype(path.suffix[1:]).newbyteorder("<")
        self._stream = open(path, "wb")  # noqa: SIM115 - closed by __exit__

    def write(self, values: npt.NDArray[Any]) -> None:
        """Appends numbers."""
        self._stream.write(np.ascontiguousarray(values, dtype=self._kind).data)

    def __exit__(self, *_: object) -> None:
        with self._stream:
            self._stream.flush()
            os.fsync(self._stream.fileno())


@dataclasses.dataclass(frozen=True)
class CorpusPart:
    """Tokens, sentences and documents, memory-mapped.

    Attributes:
        tokens: the numbers of the types, sentence behind sentence without borders, (N,) uint32.
        sentences: where each sentence begins in `tokens`, and N, (S + 1,) int64.
        documents: where each document begins in `sentences`, and S, (D + 1,) int64.
    """

    tokens: npt.NDArray[np.uint32]
    sentences: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]

    @classmethod
    def load(cls, folder: Path) -> CorpusPart:
        """Maps the files of a part."""
        return cls(*(read_array(folder / name) for name in (TOKENS, SENTENCES, DOCUMENTS)))

    @property
    def num_tokens(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    @property
    def num_sentences(self) -> int:
        """The number of sentences."""
        return len(self.sentences) - 1

    @property
    def num_documents(self) -> int:
        """The number of documents."""
        return len(self.documents) - 1


class PartWriter(contextlib.AbstractContextManager["PartWriter"]):
    """Writes a part of a corpus, sentences at a time, into a new folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.num_tokens = 0
        self.num_sentences = 0
        self.num_documents = 0
        with contextlib.ExitStack() as stack:
            self._tokens, self._sentences, self._documents = (
                stack.enter_context(ArrayWriter(folder / name)) for name in (TOKENS, SENTENCES, DOCUMENTS)
            )
            self._files = stack.pop_all()

    def add(
        self, tokens: npt.NDArray[np.integer], lengths: npt.NDArray[np.integer], is_first: npt.NDArray[np.bool_]
    ) -> None:
        """Appends sentences: their tokens (N,), lengths (S,), and which of them begin a document (S,)."""
        ends = np.cumsum(lengths, dtype=np.int64)
        self._tokens.write(tokens)
        self._sentences.write(self.num_tokens + ends - lengths)
        self._documents.write(self.num_sentences + np.flatnonzero(is_first))
        self.num_tokens += len(tokens)
        self.num_sentences += len(lengths)
        self.num_documents += int(is_first.sum())

    @property
    def num_bytes(self) -> int:
        """What has been written, in bytes."""
        return 4 * self.num_tokens + 8 * (self.num_sentences + self.num_documents)

    def finish(self) -> None:
        """Writes where the last sentence and document end, and closes the files."""
        self._sentences.write(np.array([self.num_tokens]))
        self._documents.write(np.array([self.num_sentences]))
        self._files.close()

    def __exit__(self, *_: object) -> None:
        self._files.close()


class TypeList(Sequence[str]):
    """The distinct tokens of a corpus, memory-mapped: what is asked for is read."""

    def __init__(self, folder: Path) -> None:
        self._text = np.memmap(folder / TYPES, dtype=np.uint8, mode="r")
        self._starts = read_array(folder / TYPE_STARTS)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        places = range(len(self))[index]
        if isinstance(places, int):
            return _decode_type(self._text[self._starts[places] : self._starts[places + 1]].tobytes())
        if places.step != 1:
            return [self[place] for place in places]
        starts = self._starts[places.start : places.stop + 1].tolist() if places else [0]
        text = self._text[starts[0] : starts[-1]].tobytes()
        return [_decode_type(text[start - starts[0] : end - starts[0]]) for start, end in itertools.pairwise(starts)]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _TYPES_AT_ONCE):
            yield from self[start : start + _TYPES_AT_ONCE]


def write_types(folder: Path, types: Sequence[str], order: npt.NDArray[np.integer]) -> None:
    """Writes the files that `TypeList` reads: the types in an order, given as their places in `types`."""
    end = 0
    with open(folder / TYPES, "wb") as stream, ArrayWriter(folder / TYPE_STARTS) as starts:
        starts.write(np.array([0]))
        for first in range(0, len(order), _TYPES_AT_ONCE):
            texts = [types[place].encode("utf-8", "surrogatepass") for place in order[first : first + _TYPES_AT_ONCE]]
            stream.write(b"".join(texts))
            ends = end + np.cumsum([len(text) for text in texts])
            starts.write(ends)
            end = int(ends[-1])


def _decode_type(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def write_description(folder: Path, description: dict[str, Any]) -> None:
    """Writes `corpus.json`: the description, and the sizes of the files that lie in the folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    write_json(folder / DESCRIPTION, {**description, "bytes": sizes})


def is_intact(folder: Path) -> bool:
    """Whether a corpus's folder is there and whole."""
    try:
        sizes = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))["bytes"]
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def remove_damaged(folder: Path) -> None:
    """Removes a corpus's folder that is not intact, with a warning; does nothing if there is none."""
    if folder.exists() and not is_intact(folder):
        logger.warning("%s: the prepared corpus is damaged and is made anew", folder)
        shutil.rmtree(folder)
