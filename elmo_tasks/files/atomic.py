"""Atomic writes: a file or folder is either complete or as it was before, and a full disk is one clear error."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from elmo_tasks.errors import WriteError
from elmo_tasks.files.cache import cache_folder
from elmo_tasks.files.paths import is_stream, open_file_number

_CACHE_REMEDY = "It is in the cache: set ELMO_TASKS_CACHE to a folder that you can write to"
_PREFIX, _SUFFIX = ".elmo-tasks.", ".tmp"  # of temporary files and folders
_ABANDONED_SECONDS = 24 * 3600.0  # without a write: nobody writes there any more


class OutputFile(io.FileIO):
    """A file of bytes, without a buffer, whose failed writes are a `WriteError` that names the file.

    HDF5 crashes the process if a write fails, and other libraries hide the reason. For them, `keeps_error` lets all
    writes seem to succeed and keeps the first error for `check`.

    Arguments:
        file: the file to open, or its descriptor, which stays open.
        path: the file's name in messages.
        mode: as for `open`.
    """

    def __init__(
        self, file: str | Path | int, path: str | Path, mode: str = "wb", *, keeps_error: bool = False
    ) -> None:
        super().__init__(file, mode, closefd=not isinstance(file, int))
        self._path = path
        self._keeps_error = keeps_error
        self._error: OSError | None = None
        self._needed = 0  # bytes

    def write(self, data: Any) -> int:
        bytes_ = memoryview(data).cast("B")
        begin = self.tell() if self.seekable() else self._needed
        self._needed = max(self._needed, begin + len(bytes_))
        done = 0
        try:
            while not self._error and done < len(bytes_):
                done += super().write(bytes_[done:]) or 0
        except OSError as error:
            self._failed(error)
        if self._error:
            self.seek(begin + len(bytes_))
        return len(bytes_)

    def truncate(self, size: int | None = None) -> int:
        size = self.tell() if size is None else size
        self._needed = max(self._needed, size)
        try:
            return size if self._error else super().truncate(size)
        except OSError as error:
            self._failed(error)
        return size

    def check(self) -> None:
        """Raises the `WriteError` of the first write that failed, if one did."""
        if self._error:
            raise WriteError(self._path, self._error, self._needed) from None

    def _failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):  # the reader does not want more
            raise error
        if not self._keeps_error:
            raise WriteError(self._path, error, self._needed) from None
        self._error = error


@contextlib.contextmanager
def write_errors(path: str | Path, needed: int | None = None) -> Iterator[None]:
    """Turns every `OSError` of the block into a `WriteError` that names `path`."""
    try:
        yield
    except OSError as error:
        remedy = _CACHE_REMEDY if Path(path).is_relative_to(cache_folder()) else None
        raise WriteError(path, error, needed, remedy=remedy) from None


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file in the folder of `path` for writing bytes. At the end of the block it is moved to `path`.

    Readers see either the old or the new content, never a part of it. After an error or a crash, the old file remains.
    The temporary file of a process that was killed is removed by a process that writes to the folder a day later.
    Symbolic links are followed. Devices and pipes are written directly. For libraries that open the file themselves,
    the stream's `name` is that of the temporary file.

    Raises:
        WriteError: the file cannot be written, for example because its disk is full.
    """
    path = Path(path)
    descriptor = open_file_number(path)
    if descriptor is not None or is_stream(path):
        with write_errors(path):
            file = OutputFile(path if descriptor is None else descriptor, path)  # closed by the stream
        with io.BufferedWriter(file) as stream:
            yield stream
        return
    path = path.resolve() if path.is_symlink() else path
    with _temporary(path.parent, path) as temporary:
        with io.BufferedWriter(OutputFile(temporary, path)) as stream:
            yield stream
        with write_errors(path):
            with open(temporary, "rb+") as written:
                os.fsync(written.fileno())
            os.replace(temporary, path)


@contextlib.contextmanager
def atomic_output(path: str | Path) -> Iterator[OutputFile]:
    """Like `atomic_write`, for libraries that cannot handle failed writes: the error comes at the end of the block.

    The stream can also be read and has no buffer. Long computations call its `check` from time to time.
    """
    with atomic_write(path) as file, OutputFile(file.name, path, "rb+", keeps_error=True) as stream:
        try:
            yield stream
        finally:
            stream.check()  # what the library raises after a failed write says less


@contextlib.contextmanager
def atomic_folder(path: str | Path, *, merge: bool = False) -> Iterator[Path]:
    """Like `atomic_write`, for a folder: yields an empty temporary folder that is renamed to `path` at the end.

    If another process has made the folder in the meantime, that folder is kept and this one is removed. With `merge`,
    the files are moved into a folder that may exist already, where they replace those of the same names.
    """
    path = Path(path)
    with _temporary(path if merge else path.parent, path, is_folder=True) as temporary:
        yield temporary
        if merge:
            for file in sorted(temporary.iterdir()):
                with write_errors(path / file.name):
                    os.replace(file, path / file.name)
            return
        try:
            os.rename(temporary, path)
        except OSError as error:
            if not path.is_dir():
                raise WriteError(path, error) from None


@contextlib.contextmanager
def _temporary(parent: Path, target: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Yields a new temporary file or folder, and removes it if it is still there at the end.

    Arguments:
        parent: the folder that it is made in.
        target: what errors name instead of it.
    """
    temporary = parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    with write_errors(target):
        parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(parent, os.getpid())
        if is_folder:
            temporary.mkdir()
        else:
            temporary.touch(exist_ok=False)
    try:
        yield temporary
    except WriteError as error:
        raise error.moved(temporary, target) from None
    except OSError as error:
        if error.filename is None or not Path(error.filename).is_relative_to(temporary):
            raise
        raise WriteError(error.filename, error).moved(temporary, target) from None
    finally:
        with contextlib.suppress(OSError):  # a later command that writes to the folder removes it
            _remove(temporary)


@functools.lru_cache
def _remove_leftovers(folder: Path, process: int) -> None:
    """Removes the temporary files and folders of processes that were killed more than a day ago.

    A process does this once in a folder, which may have so many files that each search takes longer than a write.
    """
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError):  # it was moved or removed, or is another user's
            last_write = max(each.lstat().st_mtime for each in (path, *path.rglob("*")))
            if time.time() - last_write > _ABANDONED_SECONDS:
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
