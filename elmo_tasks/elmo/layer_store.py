"""The layers of a frozen biLM on disk: computed once for a data set, read in every later epoch and every later run.

Each biLM, precision and form of storage has a folder `<cache folder>/layers/<name>/` with two files:

about.json       what the name stands for
layers.sqlite    the layers of each sentence, in a SQLite database

Next to the folder are locks: `<name>.<data>.lock` is held by the process that computes the layers of some data, and
`<name>.lock` is held while a store is created. To free space, delete a store's folder; running readers are not
disturbed.

# B batch, T tokens of the longest sentence, L LSTM layers, P features of one direction, D = 2P features of a layer
# N tokens of some sentences, F = P + L D stored features of a token
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import shutil
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import xxhash
from torch import Tensor

from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.errors import CacheError
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.cache import cache_folder, folder_size, human_size
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.locks import exclusive
from elmo_tasks.text.tokens import mask_of_lengths

logger = logging.getLogger(__name__)

Storage = Literal["float16", "float32"]
TORCH_TYPES: dict[Storage, torch.dtype] = {"float16": torch.float16, "float32": torch.float32}

_FORMAT_VERSION = 3  # raise it when a change of the table makes old stores unreadable

_ABOUT, _DATABASE = "about.json", "layers.sqlite"
# The last one comes from messages that quote a damaged name.
_DATABASE_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
# A change of the table needs a new version. The index of key and tokens shows what is missing. The
# checksum covers key and layers.
_TABLE = "sentences (key BLOB, tokens INTEGER, checksum INTEGER, layers BLOB, UNIQUE (key, tokens))"
_SENTENCE_BYTES = 750  # of a sentence on average, in addition to its layers: keys and unused ends of pages
_KEYS_PER_QUERY = 500  # SQLite allows at least 999
_LOCK_SECONDS = 60.0  # how long to wait for another process that is reading or writing
_OFF = "or turn the layer cache off (layer_cache: null): the model is then run in every epoch"
_ADVICE = f"Free some space on its disk, set ELMO_TASKS_CACHE to a folder of a local disk with file locks, {_OFF}"


@dataclasses.dataclass(frozen=True)
class LayerKey:
    """What layers depend on in addition to the tokens, and how they are stored."""

    fingerprint: str  # a hash of the biLM's weights and options, or of a transformer's files
    precision: str  # of the computation, such as "float32" or "bfloat16"; of a transformer, also pooling and layers
    num_layers: int  # L + 1, including the token layer
    output_size: int  # D
    storage: Storage = "float16"  # the type of the stored numbers
    has_token_layer: bool = True  # whether layer 0 is a biLM's, with two equal halves

    @property
    def name(self) -> str:
        """The name of the store."""
        values = dataclasses.astuple(self)
        # The stores of biLMs are older than the last value.
        content = json.dumps([_FORMAT_VERSION, values[:-1] if self.has_token_layer else values])
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    @property
    def omitted(self) -> int:
        """How many of a token's numbers are not stored: the halves of a biLM's token layer are equal."""
        return self.output_size // 2 if self.has_token_layer else 0

    @property
    def features(self) -> int:
        """The stored numbers F of a token."""
        return self.num_layers * self.output_size - self.omitted

    @property
    def token_bytes(self) -> int:
        """The size of a token's stored layers."""
        return self.features * TORCH_TYPES[self.storage].itemsize


class LayerStore:
    """Layers of sentences on disk.

    Any number of processes and threads may read and fill it. One that needs what another is computing, the layers of
    the same data, waits for them. Copies, such as those of worker processes, open the store again.

    Arguments:
        key: whose layers, and how they are stored.
        max_gigabytes: bound of all stores together, in 10^9 bytes.
    """

    def __init__(self, key: LayerKey, max_gigabytes: float = 20.0) -> None:
        self.key = key
        self.max_gigabytes = max_gigabytes
        self.folder = cache_folder() / "layers" / key.name
        self._path = self.folder / _DATABASE
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}  # by process and thread

    def __reduce__(self) -> tuple[type[LayerStore], tuple[LayerKey, float]]:
        return LayerStore, (self.key, self.max_gigabytes)

    def read(self, sentences: Sequence[Sequence[str]]) -> tuple[LayerOutput, list[int]]:
        """Reads the layers of sentences.

        Returns:
            layers (B, L+1, T, D), float32 in main memory, zero for missing sentences, and mask (B, T);
            the rows of the missing sentences, which do not include empty ones.

        Raises:
            CacheError: the store cannot be read.
        """
        lengths = [len(tokens) for tokens in sentences]
        keys = [sentence_key(tokens) for tokens in sentences]
        found = self._look_up("checksum, layers", keys)
        # SQLite notices damage of its page structure, but not of the stored values.
        if not all(
            isinstance(layers, bytes) and _checksum(key, layers) == kept for key, (kept, layers) in found.items()
        ):
            raise self._damaged("a checksum is wrong")
        stored = {row: found[key][1] for row, key in enumerate(keys) if key in found}
        longest, omitted = max(lengths, default=0), self.key.omitted
        # A token's features are stored in the order of its layers, only the token layer's first half is missing. So
        # one copy for each sentence is enough, which also converts the numbers.
        layers = torch.zeros(len(sentences), longest, omitted + self.key.features)  # (B, T, P+F)
        if stored:
            buffer = bytearray().join(stored.values())
            vectors = torch.frombuffer(buffer, dtype=TORCH_TYPES[self.key.storage]).view(-1, self.key.features)
            for row, part in zip(stored, vectors.split([lengths[row] for row in stored]), strict=True):
                layers[row, : lengths[row], omitted:] = part
            layers[..., :omitted] = layers[..., omitted : 2 * omitted]
        layers = layers.unflatten(-1, (self.key.num_layers, -1)).transpose(1, 2)  # (B, L+1, T, D)
        missing = [row for row, tokens in enumerate(sentences) if tokens and row not in stored]
        return LayerOutput(layers, mask_of_lengths(lengths, longest)), missing

    def missing(self, sentences: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """The distinct non-empty sentences that are not stored, the longest first."""
        by_key = {sentence_key(tokens): tokens for tokens in sentences if tokens}
        keys = sorted(by_key)
        found = self._look_up("tokens", keys)
        return sorted((by_key[key] for key in keys if key not in found), key=len, reverse=True)

    @contextlib.contextmanager
    def filling(self, sentences: Sequence[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
        """Yields what is `missing`, to be stored with `write`, while no other process fills the store with the same.

        Raises:
            CacheError: there is not enough room, or the folder cannot be written or does not have file locks.
        """
        self._disconnect()  # the store may have been removed since
        missing = self.missing(sentences)
        if not missing:
            yield missing
            return
        self._check_room(missing)
        lock = Path(f"{self.folder}.{_data_key(sentences)}.lock")
        with _locked(lock, self.folder, "computes the same layers"):
            missing = self.missing(missing)  # fewer, if another process has filled the store in the meantime
            if missing:
                logger.info("layer cache: %s to compute, kept in %s", self.need(missing)[1], self.folder)
            yield missing
            self._connection()  # an open connection can read the store even after it is removed

    def write(self, sentences: Sequence[Sequence[str]], vectors: Tensor) -> None:
        """Stores sentences inside `filling`: all of them or, if the process is killed, none.

        Arguments:
            sentences: not empty ones.
            vectors: (N, F) the stored features of their tokens, in the type of storage and in main memory.

        Raises:
            CacheError: the store cannot be written.
        """
        parts = vectors.contiguous().split([len(tokens) for tokens in sentences])
        try:
            self._create()
            with contextlib.closing(_connect(self._path, "rw")) as connection, connection:  # one transaction
                connection.execute("BEGIN IMMEDIATE")
                for tokens, part in zip(sentences, parts, strict=True):
                    key, layers = sentence_key(tokens), part.numpy().data.cast("B")
                    record = (key, len(tokens), _checksum(key, layers), layers)
                    connection.execute("INSERT OR IGNORE INTO sentences VALUES (?, ?, ?, ?)", record)
        except (OSError, *_DATABASE_ERRORS) as error:
            if _is_damage(error):
                raise self._damaged(str(error)) from error
            problem = f"the layer cache cannot be written: {error}; needs {self.need(sentences)[1]}"
            raise CacheError(f"{self.folder}: {problem}. {_ADVICE}") from error

    def _create(self) -> None:
        """Makes an empty store if there is none. Other processes see it when it is complete."""
        if self._path.exists():
            return
        with contextlib.ExitStack() as held:
            held.enter_context(_locked(Path(f"{self.folder}.lock"), self.folder, "makes this layer cache"))
            if self._path.exists():
                return
            _remove(self.folder)  # a folder without a database, which a killed process has left
            temporary = held.enter_context(atomic_folder(self.folder))
            write_json(temporary / _ABOUT, dataclasses.asdict(self.key))
            (temporary / _DATABASE).touch()
            with contextlib.closing(_connect(temporary / _DATABASE, "rw")) as connection:
                connection.execute(f"CREATE TABLE {_TABLE}")

    def _look_up(self, columns: str, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """The records that are stored, by their keys."""
        problem: Exception | None = None
        for _ in range(2):  # a new connection undoes what a killed process has left half done
            found: dict[bytes, Any] = {}
            try:
                if (connection := self._connection()) is None:
                    return found
                for first in range(0, len(keys), _KEYS_PER_QUERY):
                    some = keys[first : first + _KEYS_PER_QUERY]
                    marks = ",".join("?" * len(some))
                    statement = f"SELECT key, {columns} FROM sentences WHERE key IN ({marks})"
                    found.update((key, record) for key, *record in connection.execute(statement, some))
                return found
            except _DATABASE_ERRORS as error:
                if _is_damage(error):
                    raise self._damaged(str(error)) from error
                self._disconnect()
                problem = error
        raise CacheError(f"{self.folder}: the layer cache cannot be read: {problem}. {_ADVICE}") from problem

    def _connection(self) -> sqlite3.Connection | None:
        """The connection of this process and thread for reading; None if the store does not exist."""
        here = os.getpid(), threading.get_ident()
        if here not in self._connections and self._path.exists():
            # Only a connection that may write undoes what a killed process has left half done. The connection that
            # stays open may not write: its file may be replaced by another, which it must not change.
            with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(_connect(self._path, "rw")) as first:
                first.execute("SELECT 1 FROM sentences LIMIT 1")
            self._connections[here] = connection = _connect(self._path, "ro")
            weakref.finalize(self, connection.close)
        return self._connections.get(here)

    def _disconnect(self) -> None:
        if connection := self._connections.pop((os.getpid(), threading.get_ident()), None):
            connection.close()

    def _damaged(self, problem: str) -> CacheError:
        self._disconnect()
        advice = "remove the folder; the next run fills it again"
        return CacheError(f"{self.folder}: this layer cache is damaged ({problem}); {advice}")

    def need(self, sentences: Sequence[Sequence[str]]) -> tuple[int, str]:
        """The bytes that sentences need, and a description."""
        tokens = sum(map(len, sentences))
        size = tokens * self.key.token_bytes + len(sentences) * _SENTENCE_BYTES
        return size, f"{human_size(size)} for {len(sentences):,} distinct sentences of {tokens:,} tokens"

    def _check_room(self, sentences: Sequence[Sequence[str]]) -> None:
        size, need = self.need(sentences)
        used, bound = usage(), round(self.max_gigabytes * 1e9)
        existing = next(folder for folder in self.folder.parents if folder.exists())
        free = shutil.disk_usage(existing).free
        if used + size > bound:
            problem = f"and {human_size(used)} are already used, together more than the limit of {human_size(bound)}"
            advice = f"Raise max_gigabytes (now {self.max_gigabytes:g}), remove folders in {self.folder.parent}"
        elif size > free:
            problem = f"but the disk of {existing} has only {human_size(free)} left"
            advice = "Free some space there, set ELMO_TASKS_CACHE to a folder of another disk"
        else:
            return
        raise CacheError(f"the layer cache needs {need}, {problem}. {advice}, {_OFF}")


def usage() -> int:
    """The bytes of all stores on disk together."""
    return folder_size(cache_folder() / "layers")


def sentence_key(tokens: Sequence[str]) -> bytes:
    """The key of a sentence: a hash of its tokens and of where each ends."""
    digest = hashlib.blake2b(len(tokens).to_bytes(8, "little"), digest_size=16)
    digest.update(np.fromiter(map(len, tokens), dtype="<u4", count=len(tokens)).tobytes())
    digest.update("".join(tokens).encode("utf-8", "surrogatepass"))
    return digest.digest()


def _data_key(sentences: Sequence[Sequence[str]]) -> str:
    """A name for the distinct sentences of some data."""
    keys = sorted({sentence_key(tokens) for tokens in sentences if tokens})
    return hashlib.blake2b(b"".join(keys), digest_size=8).hexdigest()


def _checksum(key: bytes, layers: bytes | memoryview) -> int:
    return xxhash.xxh3_64_intdigest(layers, xxhash.xxh32_intdigest(key)) >> 1  # SQLite's integers have a sign


def _connect(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
    if mode == "ro":  # a quarter faster; SQLite maps as much of the file as it can, usually 2 GB
        connection.execute(f"PRAGMA mmap_size = {1 << 40}")
    return connection


def _is_damage(error: Exception) -> bool:
    """Whether an error will come again. Those that may pass, such as that of a locked file, are subclasses."""
    return type(error) in _DATABASE_ERRORS or "no such table" in str(error)


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(lock: Path, folder: Path, waiting_for: str) -> Iterator[None]:
    """Holds a lock of a store; raises `CacheError` if locks do not work."""
    with contextlib.ExitStack() as held:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(exclusive(lock, waiting_for))
        except (OSError, NotImplementedError) as error:
            raise CacheError(f"{folder}: the layer cache cannot be locked: {error}. {_ADVICE}") from error
        yield
