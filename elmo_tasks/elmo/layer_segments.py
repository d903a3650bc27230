"""The files of the layer cache: segments, each written once and whole, named by a checksum and memory-mapped.

header    128 bytes   JSON: sentences, tokens, features, dtype; filled up with spaces
keys      (K, 16)     bytes that tell the sentences apart
lengths   (K,)        int64, the sentences' tokens
vectors   (N, F)      float16 or float32, the sentences' tokens one after the other

# K sentences of a segment, N tokens of all of them, B sentences that are looked up
# F = P + L D features of a token: the token layer's distinct half P, and L LSTM layers of D = 2P
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.files import atomic_write

logger = logging.getLogger(__name__)

Storage = Literal["float16", "float32"]
TORCH_TYPES: dict[Storage, torch.dtype] = {"float16": torch.float16, "float32": torch.float32}

SUFFIX = ".segment"
_HEADER_BYTES = 128
_KEY_BYTES = 16
_KEY_TYPE = f"S{_KEY_BYTES}"
SENTENCE_BYTES = _KEY_BYTES + 8  # what a sentence takes beside its vectors

_PLACE_TYPE = np.dtype([("segment", np.int32), ("start", np.int64), ("length", np.int64)])


class DamagedSegmentError(Exception):
    """A segment is cut short, altered, or not one at all."""


def sentence_keys(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Keys (B,) of sentences: a hash of a sentence's tokens, and of nothing else."""
    return np.array([_sentence_key(tokens) for tokens in sentences], dtype=_KEY_TYPE)


def _sentence_key(tokens: Sequence[str]) -> bytes:
    # The text alone would not do: the lengths say where each token ends.
    lengths = np.fromiter(map(len, tokens), dtype="<u4", count=len(tokens))
    digest = hashlib.blake2b(struct.pack("<Q", len(tokens)), digest_size=_KEY_BYTES)
    digest.update(lengths.tobytes())
    digest.update("".join(tokens).encode("utf-8", "surrogatepass"))
    return digest.digest()


@dataclasses.dataclass(frozen=True)
class SegmentHeader:
    """What a segment holds."""

    sentences: int
    tokens: int
    features: int
    dtype: Storage

    @property
    def index_bytes(self) -> int:
        return self.sentences * SENTENCE_BYTES

    @property
    def file_bytes(self) -> int:
        vector_bytes = self.features * TORCH_TYPES[self.dtype].itemsize
        return _HEADER_BYTES + self.index_bytes + self.tokens * vector_bytes

    def to_bytes(self) -> bytes:
        return json.dumps(dataclasses.asdict(self)).encode().ljust(_HEADER_BYTES)

    @classmethod
    def read(cls, path: Path) -> SegmentHeader:
        """Reads a segment's header and compares the file's size with it.

        Raises:
            DamagedSegmentError: the file is not of the size that it should have, or no segment.
        """
        with open(path, "rb") as stream:
            raw = stream.read(_HEADER_BYTES)
            size = os.fstat(stream.fileno()).st_size
        try:
            header = cls(**json.loads(raw))
            wanted = header.file_bytes
        except (ValueError, TypeError, KeyError):
            raise DamagedSegmentError("its header cannot be read") from None
        if size != wanted:
            raise DamagedSegmentError(f"it has {size} bytes instead of {wanted}")
        return header


@dataclasses.dataclass(frozen=True)
class Segment:
    """An open segment. Its vectors come from the disk when they are looked at."""

    keys: np.ndarray  # (K,) as from `sentence_keys`
    lengths: np.ndarray  # (K,) int64
    vectors: Tensor  # (N, F)

    @classmethod
    def open(cls, path: Path) -> Segment:
        """Maps a segment into memory.

        Raises:
            DamagedSegmentError: the file is not whole, or its index is not what was written.
        """
        header = SegmentHeader.read(path)
        with open(path, "rb") as stream:
            checked = stream.read(_HEADER_BYTES + header.index_bytes)
        if path.stem != _checksum(checked):
            raise DamagedSegmentError("its index is not what was written")
        keys = np.frombuffer(checked, _KEY_TYPE, header.sentences, _HEADER_BYTES)
        lengths = np.frombuffer(checked, np.int64, header.sentences, _HEADER_BYTES + keys.nbytes)
        # A private mapping ("c") that nobody writes to: torch wants memory that could be written.
        shape = (header.tokens, header.features)
        vectors = np.memmap(path, header.dtype, mode="c", offset=len(checked), shape=shape)
        return cls(keys, lengths, torch.from_numpy(vectors))


def write_segment(folder: Path, keys: np.ndarray, lengths: np.ndarray, vectors: Tensor) -> Path:
    """Writes a segment. A process that is killed meanwhile leaves a temporary file and no segment.

    Arguments:
        folder: where to.
        keys: (K,) as from `sentence_keys`.
        lengths: (K,) int64 tokens of each sentence, none of them 0.
        vectors: (N, F) float16 or float32, in the main memory.
    """
    storage: Storage = "float16" if vectors.dtype == torch.float16 else "float32"
    header = SegmentHeader(len(keys), vectors.shape[0], vectors.shape[1], storage)
    index = header.to_bytes() + keys.tobytes() + lengths.tobytes()
    path = folder / f"{_checksum(index)}{SUFFIX}"
    with atomic_write(path) as stream:
        stream.write(index)
        stream.write(vectors.contiguous().numpy().data)
    return path


def _checksum(header_and_index: bytes) -> str:
    return hashlib.blake2b(header_and_index, digest_size=16).hexdigest()


class SegmentTable:
    """All segments of a folder as one table from sentences to vectors. It never changes; see `with_new`.

    Arguments:
        segments: the open segments by their files' names.
    """

    def __init__(self, segments: dict[str, Segment]) -> None:
        self._segments = segments
        self._vectors = [segment.vectors for segment in segments.values()]
        keys = [segment.keys for segment in segments.values()]
        all_keys = np.concatenate([np.empty(0, dtype=_KEY_TYPE), *keys])
        order = np.argsort(all_keys, kind="stable")
        self._keys = all_keys[order]
        self._places = self._all_places()[order]

    def _all_places(self) -> np.ndarray:
        """Where each sentence's vectors lie, segment by segment."""
        parts = [np.empty(0, dtype=_PLACE_TYPE)]
        for number, segment in enumerate(self._segments.values()):
            places = np.empty(len(segment.keys), dtype=_PLACE_TYPE)
            places["segment"] = number
            places["start"] = segment.lengths.cumsum() - segment.lengths
            places["length"] = segment.lengths
            parts.append(places)
        return np.concatenate(parts)

    def with_new(self, folder: Path) -> SegmentTable:
        """This table and what has been written to the folder since; damaged segments are removed with a warning."""
        new: dict[str, Segment] = {}
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            if path.name in self._segments:
                continue
            try:
                new[path.name] = Segment.open(path)
            except FileNotFoundError:
                continue  # somebody cleared the cache in this moment
            except DamagedSegmentError as problem:
                logger.warning("%s: this part of the layer cache is damaged and removed: %s", path, problem)
                path.unlink(missing_ok=True)
        return SegmentTable(self._segments | new) if new else self

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Looks sentences up.

        Arguments:
            keys: (B,) as from `sentence_keys`.

        Returns:
            which of them are there (B,) bool; the places (B,) of those that are, for `vectors`.
        """
        if not len(self._keys):
            return np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=np.int64)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[places] == keys, places

    def vectors(self, place: int) -> Tensor:
        """A sentence's vectors (tokens, F), not to be written to."""
        segment, start, length = self._places[place].tolist()
        return self._vectors[segment][start : start + length]
