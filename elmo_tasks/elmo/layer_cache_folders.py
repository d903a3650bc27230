"""Where the layer cache lies on disk, who may write there, what there is, and how to be rid of it.

One folder `<cache folder>/layers/<name>/` for each biLM, precision and form of storage:

about.json       what the name stands for; its time of change is the time of last use
*.segment        sentences' layers, see `layer_segments`
fill.lock        held by the process that computes; the kernel lets go of it however that process ends
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from elmo_tasks.elmo.layer_segments import SUFFIX, TORCH_TYPES, DamagedSegmentError, SegmentHeader, Storage
from elmo_tasks.errors import CacheError
from elmo_tasks.files import cache_folder, write_json

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1  # to be raised whenever a change of the files' form makes old ones unreadable

_ABOUT = "about.json"
_LOCK = "fill.lock"


@dataclasses.dataclass(frozen=True)
class LayerCacheKey:
    """What layers depend on beside the tokens, and the form in which they are stored.

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
        """The name of the cache's folder."""
        content = json.dumps([FORMAT_VERSION, dataclasses.astuple(self)])
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    @property
    def folder(self) -> Path:
        """Where this cache lies, or will."""
        return layers_folder() / self.name

    @property
    def features(self) -> int:
        """The numbers F that are stored of a token: of the token layer, whose halves are equal, only one half."""
        return self.output_size // 2 + (self.num_layers - 1) * self.output_size

    @property
    def token_bytes(self) -> int:
        """What a token takes on disk."""
        return self.features * TORCH_TYPES[self.storage].itemsize


@dataclasses.dataclass(frozen=True)
class CacheInfo:
    """One cache of layers on disk, as `elmo-tasks cache info` lists it."""

    name: str
    key: LayerCacheKey
    sentences: int
    tokens: int
    bytes: int
    last_used: datetime.datetime

    def as_row(self) -> tuple[str, ...]:
        """For people: name, biLM, precision, storage, sentences, tokens, size, time of last use."""
        key, used = self.key, self.last_used.astimezone()
        return (
            self.name[:8],
            key.fingerprint[:8],
            key.precision,
            key.storage,
            f"{self.sentences:,}",
            f"{self.tokens:,}",
            human_size(self.bytes),
            f"{used:%Y-%m-%d %H:%M}",
        )


def info() -> list[CacheInfo]:
    """The caches of layers on disk, the last used first."""
    found = [_describe(folder) for folder in _folders() if (folder / _ABOUT).is_file()]
    return sorted(found, key=lambda entry: entry.last_used, reverse=True)


def clear(name: str | None = None) -> int:
    """Removes caches of layers. Runs that read one of them now are not disturbed.

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
        with sole_writer(folder, wait=False):
            freed += _size(folder)
            shutil.rmtree(folder)
    return freed


def layers_folder() -> Path:
    """The folder of all layer caches."""
    return cache_folder() / "layers"


def total_bytes() -> int:
    """What all layer caches take on disk."""
    return sum(map(_size, _folders()))


def write_about(key: LayerCacheKey) -> None:
    """Says in a cache's folder what its name stands for."""
    write_json(key.folder / _ABOUT, dataclasses.asdict(key))


def mark_used(key: LayerCacheKey) -> None:
    """Notes the time of last use of a cache, if it is there."""
    # One that belongs to somebody else can be read all the same.
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.utime(key.folder / _ABOUT)


def human_size(size: int) -> str:
    """A number of bytes for people, in decimal units: 1.04 GB."""
    value, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"


def _folders() -> list[Path]:
    return sorted(path for path in layers_folder().glob("*") if path.is_dir())


def _describe(folder: Path) -> CacheInfo:
    about = folder / _ABOUT
    try:
        key = LayerCacheKey(**json.loads(about.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        advice = f"remove this layer cache with `elmo-tasks cache clear {folder.name}`"
        raise CacheError(f"{about}: is damaged, or of another version of this project; {advice}") from None
    headers = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(DamagedSegmentError):  # the next reader removes it
            headers.append(SegmentHeader.read(path))
    return CacheInfo(
        folder.name,
        key,
        sentences=sum(header.sentences for header in headers),
        tokens=sum(header.tokens for header in headers),
        bytes=_size(folder),
        last_used=datetime.datetime.fromtimestamp(about.stat().st_mtime, tz=datetime.timezone.utc),
    )


def _size(folder: Path) -> int:
    size = 0
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # a temporary file that has got its name since
            size += path.stat().st_size
    return size


@contextlib.contextmanager
def sole_writer(folder: Path, wait: bool = True) -> Iterator[None]:
    """Holds the lock of a cache's folder, and removes what killed processes have left in it.

    Without the lock nothing worse could happen than that two processes compute the same, since segments come into being
    whole; so a file system that knows no locks will do.

    Raises:
        CacheError: another process holds the lock, and `wait` is not set.
    """
    with open(folder / _LOCK, "ab") as stream:
        if _lock(stream, folder, wait):
            for left_over in folder.glob(".*.tmp"):
                left_over.unlink(missing_ok=True)
        yield


def _lock(stream: IO[bytes], folder: Path, wait: bool) -> bool:
    """Takes the lock that lies in a file; False where the file system has no locks."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if not wait:
            raise CacheError(f"{folder}: a run is filling this layer cache; try again when it has done so") from None
        logger.info("layer cache: waiting for another process that fills %s", folder)
        fcntl.flock(stream, fcntl.LOCK_EX)
    except OSError as error:
        logger.warning("%s: no file locks here (%s); runs that fill it at once repeat each other's work", folder, error)
        return False
    return True
