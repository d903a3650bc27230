"""The layers of a frozen biLM on disk: computed once for a data set, read in every later epoch and every later run.

One folder `<cache folder>/layers/<name>/` for each biLM, precision and form of storage:

about.json       what the name stands for; its time of change is the time of last use
layers.sqlite    the layers of each sentence, in a SQLite database

Beside it is `<name>.lock`, an empty file: the process that fills the store holds its lock.

# B batch, T tokens of the longest sentence, L LSTM layers, P features of one direction, D = 2P features of a layer
# N tokens of some sentences, F = P + L D features that are stored of a token
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import logging
import os
import shutil
import sqlite3
import struct
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import filelock
import numpy as np
import torch
from torch import Tensor

from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.errors import CacheError
from elmo_tasks.files import atomic_folder, cache_folder, write_json

logger = logging.getLogger(__name__)

Storage = Literal["float16", "float32"]
TORCH_TYPES: dict[Storage, torch.dtype] = {"float16": torch.float16, "float32": torch.float32}

_FORMAT_VERSION = 2  # to be raised whenever a change of the table makes old stores unreadable

_ABOUT, _DATABASE = "about.json", "layers.sqlite"
# The index, of key and tokens, is all that `info` has to look at. The checksum is of key and layers.
_TABLE = "sentences (key BLOB, tokens INTEGER, checksum INTEGER, layers BLOB, UNIQUE (key, tokens))"
_SENTENCE_BYTES = 750  # what a sentence takes in addition to its layers, on average: its keys and the ends of pages
_LOCK_SECONDS = 60.0  # how long to wait for another process that reads or writes just now
_OFF = "or turn the layer cache off (layer_cache: null): the biLM is then run in every epoch"
_ADVICE = f"Make room on its disk, set ELMO_TASKS_CACHE to a folder of a local disk with file locks, {_OFF}"


@dataclasses.dataclass(frozen=True)
class LayerKey:
    """What layers depend on in addition to the tokens, and the form in which they are stored.

    Arguments:
        fingerprint: a hash of the biLM's weights and options.
        precision: of the computation, such as "float32" or "bfloat16".
        num_layers: L + 1, the token layer counted.
        output_size: D.
        storage: the type of the stored numbers.
    """

    fingerprint: str
    precision: str
    num_layers: int
    output_size: int
    storage: Storage = "float16"

    @property
    def name(self) -> str:
        """The name of the store's folder."""
        content = json.dumps([_FORMAT_VERSION, dataclasses.astuple(self)])
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    @property
    def folder(self) -> Path:
        """Where the store is, or will be."""
        return cache_folder() / "layers" / self.name

    @property
    def features(self) -> int:
        """The numbers F that are stored of a token: of the token layer, whose halves are equal, only one half."""
        return self.output_size // 2 + (self.num_layers - 1) * self.output_size

    @property
    def token_bytes(self) -> int:
        """The size of a token's stored layers."""
        return self.features * TORCH_TYPES[self.storage].itemsize


class LayerStore:
    """Layers of sentences on disk.

    Any number of processes and threads may read. One process at a time fills the store: others that want to fill it
    wait. Copies, such as those of worker processes, open the store anew.

    Arguments:
        key: whose layers, in what form.
        max_gigabytes: bound of all stores together, in 10^9 bytes.
    """

    def __init__(self, key: LayerKey, max_gigabytes: float = 20.0) -> None:
        self.key = key
        self.max_gigabytes = max_gigabytes
        self.folder = key.folder
        self._path = self.folder / _DATABASE
        self._lock = _lock_of(self.folder)
        # A connection for each process and thread, since none may use another's.
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}
        # A store that belongs to somebody else can be read too.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.utime(self.folder / _ABOUT)

    def __reduce__(self) -> tuple[type[LayerStore], tuple[LayerKey, float]]:
        return LayerStore, (self.key, self.max_gigabytes)

    def read(self, sentences: Sequence[Sequence[str]]) -> tuple[LayerOutput, list[int]]:
        """The layers of those sentences that are there, and which of the sentences are not.

        Returns:
            layers (B, L+1, T, D), float32 in the main memory, zero for missing sentences, and mask (B, T);
            the rows of the missing sentences, empty ones never among them.

        Raises:
            CacheError: the store cannot be read.
        """
        lengths = torch.tensor([len(tokens) for tokens in sentences], dtype=torch.int64)
        stored = self._stored(sentences)
        longest, half, size = max(map(len, sentences), default=0), self.key.output_size // 2, self.key.output_size
        # A token's stored features are its layers one behind the other without the token layer's first half, which is
        # equal to the second: a single copy for each sentence, which converts as it goes.
        layers = torch.zeros(len(sentences), longest, half + self.key.features)  # (B, T, P+F)
        if stored:
            buffer = bytearray().join(stored.values())
            vectors = torch.frombuffer(buffer, dtype=TORCH_TYPES[self.key.storage]).view(-1, self.key.features)
            for row, part in zip(stored, vectors.split(lengths[list(stored)].tolist()), strict=True):
                layers[row, : len(part), half:] = part
        layers[..., :half] = layers[..., half:size]
        layers = layers.unflatten(-1, (self.key.num_layers, size)).transpose(1, 2)  # (B, L+1, T, D)
        mask = torch.arange(longest)[None, :] < lengths[:, None]  # (B, T)
        return LayerOutput(layers, mask), [row for row, tokens in enumerate(sentences) if tokens and row not in stored]

    def missing(self, sentences: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """The distinct sentences, without empty ones, that are not there: the longest first."""
        by_key = {sentence_key(tokens): tokens for tokens in sentences if tokens}
        keys = sorted(by_key)
        records = self._look_up("tokens", keys)
        missing = [by_key[key] for key, record in zip(keys, records, strict=True) if record is None]
        return sorted(missing, key=len, reverse=True)

    @contextlib.contextmanager
    def filling(self, sentences: Sequence[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
        """Gives what is `missing`, to be stored with `write`, while no other process can fill the store.

        Raises:
            CacheError: there is not enough room, or the folder cannot be written or does not have file locks.
        """
        self._disconnect()  # from a store that somebody has cleared meanwhile
        missing = self.missing(sentences)
        if not missing:
            yield missing
            return
        self._check_room(missing)
        with _locked(self._lock, self.folder):
            missing = self.missing(missing)  # fewer, if another process has filled the store meanwhile
            if missing:
                logger.info("layer cache: %s to compute, kept in %s", self._need(missing)[1], self.folder)
            yield missing
            self._connection()  # which can read the store from now on even if somebody clears it

    def write(self, sentences: Sequence[Sequence[str]], vectors: Tensor) -> None:
        """Stores sentences, all of them or, if the process is killed, none; only inside of `filling`.

        Arguments:
            sentences: without empty ones.
            vectors: (N, F) the features that are stored of their tokens, in the type of storage and the main memory.

        Raises:
            CacheError: the store cannot be written.
        """
        parts = vectors.contiguous().split([len(tokens) for tokens in sentences])
        try:
            if not self._path.exists():
                _create(self.key)
            with contextlib.closing(_connect(self._path, "rw")) as connection, connection:  # one transaction
                connection.execute("BEGIN IMMEDIATE")
                for tokens, part in zip(sentences, parts, strict=True):
                    key, layers = sentence_key(tokens), part.numpy().data.cast("B")
                    record = (key, len(tokens), _checksum(key, layers), layers)
                    connection.execute("INSERT OR IGNORE INTO sentences VALUES (?, ?, ?, ?)", record)
        except (OSError, sqlite3.DatabaseError) as error:
            if _is_damage(error):
                self._discard(str(error))
            raise CacheError(f"{self.folder}: the layer cache cannot be written: {error}. {_ADVICE}") from error

    def _stored(self, sentences: Sequence[Sequence[str]]) -> dict[int, bytes]:
        """The stored layers of the sentences that are there, by their rows."""
        keys = [sentence_key(tokens) for tokens in sentences]
        records = self._look_up("checksum, layers", keys)
        stored = {row: record for row, record in enumerate(records) if record is not None}
        # SQLite finds damage of its own pages, but not of what is stored in them.
        if any(checksum != _checksum(keys[row], layers) for row, (checksum, layers) in stored.items()):
            self._discard("a checksum is wrong")
            return {}
        return {row: layers for row, (_, layers) in stored.items()}

    def _look_up(self, columns: str, keys: Sequence[bytes]) -> list[Any]:
        """The records of keys, read in one transaction; None for those that are not there."""
        problem: Exception | None = None
        for _ in range(2):  # connecting anew undoes what a process has left half done that was killed meanwhile
            try:
                connection = self._connection()
                if connection is None:
                    return [None] * len(keys)
                with connection:
                    connection.execute("BEGIN")
                    statement = f"SELECT {columns} FROM sentences WHERE key = ?"
                    return [connection.execute(statement, (key,)).fetchone() for key in keys]
            except sqlite3.DatabaseError as error:
                self._disconnect()
                if _is_damage(error):
                    self._discard(str(error))
                problem = error
        raise CacheError(f"{self.folder}: the layer cache cannot be read: {problem}. {_ADVICE}") from problem

    def _connection(self) -> sqlite3.Connection | None:
        """This process's and thread's connection for reading; None if there is no store."""
        here = os.getpid(), threading.get_ident()
        if here not in self._connections and self._path.exists():
            # To undo what a killed process has left half done, a connection must be one that may write. The one that
            # stays open may not: somebody may remove its file, and put another in its place that it must not touch.
            with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(_connect(self._path, "rw")) as first:
                first.execute("SELECT 1 FROM sentences LIMIT 1")
            self._connections[here] = connection = _connect(self._path, "ro")
            weakref.finalize(self, connection.close)
        return self._connections.get(here)

    def _disconnect(self) -> None:
        if connection := self._connections.pop((os.getpid(), threading.get_ident()), None):
            connection.close()

    def _discard(self, problem: str) -> None:
        """Removes a damaged store, unless another process is filling it just now."""
        logger.warning("%s: this layer cache is damaged and removed; it will be made anew: %s", self.folder, problem)
        self._disconnect()
        with contextlib.suppress(CacheError), _locked(self._lock, self.folder, wait=False):
            _remove(self.folder)

    def _need(self, sentences: Sequence[Sequence[str]]) -> tuple[int, str]:
        """The bytes that sentences take, and a description."""
        tokens = sum(map(len, sentences))
        size = tokens * self.key.token_bytes + len(sentences) * _SENTENCE_BYTES
        return size, f"{human_size(size)} for {len(sentences):,} distinct sentences of {tokens:,} tokens"

    def _check_room(self, sentences: Sequence[Sequence[str]]) -> None:
        size, need = self._need(sentences)
        used, bound = sum(map(_size, _folders())), round(self.max_gigabytes * 1e9)
        if used + size > bound:
            raise CacheError(
                f"the layer cache needs {need}, and {human_size(used)} are taken already, which together is more than "
                f"its bound of {human_size(bound)}. Raise max_gigabytes (now {self.max_gigabytes:g}), make room with "
                f"`elmo-tasks cache clear`, {_OFF}"
            )
        existing = next(folder for folder in self.folder.parents if folder.exists())
        free = shutil.disk_usage(existing).free
        if size > free:
            raise CacheError(
                f"the layer cache needs {need}, but the disk of {existing} has only {human_size(free)} left. Make room "
                f"there, set ELMO_TASKS_CACHE to a folder of another disk, {_OFF}"
            )


@dataclasses.dataclass(frozen=True)
class StoreInfo:
    """One store of layers on disk, as `elmo-tasks cache info` lists it."""

    name: str
    key: LayerKey
    sentences: int
    tokens: int
    bytes: int
    last_used: datetime.datetime

    def as_row(self) -> tuple[str, ...]:
        """For people: name, biLM, precision, storage, sentences, tokens, size, time of last use."""
        key, used = self.key, self.last_used.astimezone()
        counts = (f"{self.sentences:,}", f"{self.tokens:,}", human_size(self.bytes), f"{used:%Y-%m-%d %H:%M}")
        return self.name[:8], key.fingerprint[:8], key.precision, key.storage, *counts


def info() -> list[StoreInfo]:
    """The stores of layers on disk, the last used first. Of those of versions before SQLite, only the size is known.

    Raises:
        CacheError: one of them cannot be read.
    """
    found = [_describe(folder) for folder in _folders() if (folder / _ABOUT).is_file()]
    return sorted(found, key=lambda entry: entry.last_used, reverse=True)


def clear(name: str | None = None) -> int:
    """Removes stores of layers. Runs that read one of them now are not disturbed.

    Arguments:
        name: of the one to remove, or the beginning of its name; by default all of them.

    Returns:
        the bytes that were freed.

    Raises:
        CacheError: there is none of this name, more than one begins with it, or a process is filling one just now.
    """
    folders = _folders()
    if name is not None:
        chosen = [folder for folder in folders if folder.name.startswith(name)]
        if len(chosen) != 1:
            known = ", ".join(folder.name for folder in folders) or "none"
            problem = "no layer cache has" if not chosen else "more than one layer cache has"
            raise CacheError(f"{problem} a name that begins with {name!r}; there are: {known}")
        folders = chosen
    freed = 0
    for folder in folders:
        with _locked(_lock_of(folder), folder, wait=False):
            freed += _size(folder)
            _remove(folder)
    return freed


def human_size(size: int) -> str:
    """A number of bytes for people, in decimal units: 1.04 GB."""
    value, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"


def sentence_key(tokens: Sequence[str]) -> bytes:
    """The key of a sentence: a hash of its tokens, and of nothing else."""
    # The text is not enough: the lengths say where each token ends.
    lengths = np.fromiter(map(len, tokens), dtype="<u4", count=len(tokens))
    digest = hashlib.blake2b(struct.pack("<Q", len(tokens)), digest_size=16)
    digest.update(lengths.tobytes())
    digest.update("".join(tokens).encode("utf-8", "surrogatepass"))
    return digest.digest()


def _checksum(key: bytes, layers: bytes | memoryview) -> int:
    return zlib.crc32(layers, zlib.crc32(key))


def _connect(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
    if mode == "ro":  # a quarter faster; SQLite maps the part of the file that it can, 2 GB as a rule
        connection.execute(f"PRAGMA mmap_size = {1 << 40}")
    return connection


def _is_damage(error: Exception) -> bool:
    # What SQLite cannot do just now has classes of its own; a damaged file has only the class of them all.
    return type(error) is sqlite3.DatabaseError or "no such table" in str(error)


def _create(key: LayerKey) -> None:
    """Makes an empty store, which other processes see when it is complete."""
    _remove(key.folder)  # of a killed process: a folder without a database
    with atomic_folder(key.folder) as temporary:
        write_json(temporary / _ABOUT, dataclasses.asdict(key))
        (temporary / _DATABASE).touch()
        with contextlib.closing(_connect(temporary / _DATABASE, "rw")) as connection:
            connection.execute(f"CREATE TABLE {_TABLE}")


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _folders() -> list[Path]:
    return sorted(path for path in (cache_folder() / "layers").glob("*") if path.is_dir())


def _size(folder: Path) -> int:
    size = 0
    for path in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # a journal that has done its work
            size += path.stat().st_size
    return size


def _describe(folder: Path) -> StoreInfo:
    about, sentences, tokens = folder / _ABOUT, 0, 0
    try:
        key = LayerKey(**json.loads(about.read_text(encoding="utf-8")))
        if (folder / _DATABASE).exists():
            with contextlib.closing(_connect(folder / _DATABASE, "ro")) as connection:
                sentences, tokens = connection.execute("SELECT count(*), total(tokens) FROM sentences").fetchone()
    except (ValueError, TypeError, sqlite3.DatabaseError) as error:
        advice = f"remove this layer cache with `elmo-tasks cache clear {folder.name}`"
        raise CacheError(f"{folder}: is damaged, or of another version of this project ({error}); {advice}") from None
    last_used = datetime.datetime.fromtimestamp(about.stat().st_mtime, tz=datetime.timezone.utc)
    return StoreInfo(folder.name, key, sentences, int(tokens), _size(folder), last_used)


def _lock_of(folder: Path) -> filelock.BaseFileLock:
    return filelock.FileLock(folder.with_name(f"{folder.name}.lock"))


@contextlib.contextmanager
def _locked(lock: filelock.BaseFileLock, folder: Path, wait: bool = True) -> Iterator[None]:
    """Holds the lock of a store, which the kernel lets go of however the process ends.

    Raises:
        CacheError: another process holds the lock, and `wait` is not set; or the lock cannot be taken at all.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            if not wait:
                raise CacheError(f"{folder}: a run is filling this layer cache; try again when it is done") from None
            logger.info("layer cache: waiting for another process that fills %s", folder)
            lock.acquire()
    except (OSError, NotImplementedError) as error:
        raise CacheError(f"{folder}: the layer cache cannot be locked: {error}. {_ADVICE}") from error
    try:
        yield
    finally:
        lock.release()
