"""Atomic writes: a file or folder is either complete or as it was before, and a full disk is one clear error."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from elmo_tasks.errors import WriteError
from elmo_tasks.files.cache import cache_folder
from elmo_tasks.files.json_files import json_text
from elmo_tasks.files.paths import is_stream, open_file_number

_CACHE_REMEDY = "It is in the cache: set ELMO_TASKS_CACHE to a folder that you can write to"


class OutputFile(io.FileIO):
    """A file of bytes, without a buffer, whose failed writes are a `WriteError` that names the file.

    HDF5 crashes the process if a write fails, and other libraries hide the reason. For them, `keeps_error` lets all
    writes seem to succeed and keeps the first error for `check`.

    Arguments:
        file: the file to open, or its descriptor, which stays open.
        path: the file's name in messages.
    """

    def __init__(self, file: str | Path | int, path: str | Path, *, keeps_error: bool = False) -> None:
        super().__init__(file, "rb+" if isinstance(file, int) else "wb", closefd=not isinstance(file, int))
        self._path = path
        self._keeps_error = keeps_error
        self._error: OSError | None = None
        self._wanted = 0  # bytes

    def write(self, data: Any) -> int:
        bytes_ = memoryview(data).cast("B")
        begin = self.tell() if self.seekable() else self._wanted
        self._wanted = max(self._wanted, begin + len(bytes_))
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
        self._wanted = max(self._wanted, size)
        try:
            return size if self._error else super().truncate(size)
        except OSError as error:
            self._failed(error)
        return size

    def check(self) -> None:
        """Raises the `WriteError` of the first write that failed, if one did."""
        if self._error:
            raise WriteError(self._path, self._error, self._wanted) from None

    def _failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):  # the reader does not want more
            raise error
        if not self._keeps_error:
            raise WriteError(self._path, error, self._wanted) from None
        self._error = error


@contextlib.contextmanager
def write_errors(path: str | Path, wanted: int | None = None) -> Iterator[None]:
    """Turns an OSError that does not name a file, or names a temporary one, into a `WriteError` that names `path`."""
    try:
        yield
    except OSError as error:
        remedy = _CACHE_REMEDY if Path(path).is_relative_to(cache_folder()) else None
        raise WriteError(path, error, wanted, remedy=remedy) from None


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file in the folder of `path` for writing bytes. At the end of the block it is moved to `path`.

    Readers see either the old or the new content, never a part of it. After an error or a crash, the old file remains.
    The temporary file of a process that was killed is removed by the next process that writes to the folder. Devices
    and pipes are written directly.

    Raises:
        WriteError: the file cannot be written, for example because its disk is full.
    """
    path = Path(path)
    with contextlib.ExitStack() as stack:
        if is_stream(path) or open_file_number(path) is not None:
            with write_errors(path):
                descriptor = open_file_number(path)
                file = OutputFile(path if descriptor is None else descriptor, path)  # closed by the stream below
        else:
            file = OutputFile(stack.enter_context(_replacing(path))[1], path)
        with io.BufferedWriter(file) as stream:
            yield stream


@contextlib.contextmanager
def atomic_output(path: str | Path) -> Iterator[OutputFile]:
    """Like `atomic_write`, for libraries that do not bear failed writes: the error is raised at the end of the block.

    The stream can also be read and has no buffer. Long computations call its `check` from time to time.
    """
    path = Path(path)
    with _replacing(path) as (_, handle), OutputFile(handle, path, keeps_error=True) as stream:
        try:
            yield stream
        finally:
            stream.check()  # what the library raises after a failed write says less


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Like `atomic_write`, for libraries that need the name of a file: yields a temporary path in the same folder.

    Every error of the system within the block is taken for one of writing this file.
    """
    with _replacing(Path(path)) as (temporary, _), write_errors(path):
        yield temporary


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Like `atomic_write`, for a folder: yields an empty temporary folder that is renamed to `path` at the end.

    If another process has made the folder in the meantime, that folder is kept and this one is removed.
    """
    path = Path(path)
    with _temporary_folder(path.parent, path) as temporary:
        yield temporary
        try:
            temporary.chmod(0o777 & ~_umask())
            os.rename(temporary, path)
        except OSError as error:
            if not path.is_dir():
                raise WriteError(path, error) from None


@contextlib.contextmanager
def atomic_files(folder: str | Path) -> Iterator[Path]:
    """Yields a temporary folder for files that belong together. At the end of the block they are moved to `folder`.

    After an error, none is moved.
    """
    folder = Path(folder)
    with _temporary_folder(folder, folder) as temporary:
        yield temporary
        for path in sorted(temporary.iterdir()):
            with write_errors(folder / path.name):
                os.replace(path, folder / path.name)


@contextlib.contextmanager
def _temporary_folder(parent: Path, target: Path) -> Iterator[Path]:
    """Yields a temporary folder, which is removed if it is still there. Errors name the file's place in `target`."""

    def make(prefix: str) -> tuple[Path, int]:
        return _opened(Path(tempfile.mkdtemp(_TEMPORARY_SUFFIX, prefix, parent)))

    with _temporary(parent, target, make) as (temporary, _):
        try:
            yield temporary
        except WriteError as error:
            raise error.moved(temporary, target) from None
        except OSError as error:
            if error.filename is None or not Path(error.filename).is_relative_to(temporary):
                raise
            raise WriteError(error.filename, error).moved(temporary, target) from None


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[tuple[Path, int]]:
    """Yields a temporary file, as its path and an open descriptor. At the end of the block it is moved to `path`.

    Of a link, the file that it leads to is replaced.
    """
    path = path.resolve() if path.is_symlink() else path

    def make(prefix: str) -> tuple[Path, int]:
        handle, name = tempfile.mkstemp(_TEMPORARY_SUFFIX, prefix, path.parent)
        return Path(name), handle

    with _temporary(path.parent, path, make) as (temporary, handle):
        yield temporary, handle
        with write_errors(path):
            # mkstemp creates files that only their owner can read; set the usual permissions of a new file.
            temporary.chmod(0o666 & ~_umask())
            os.fsync(handle)
            os.replace(temporary, path)


_TEMPORARY_PREFIX, _TEMPORARY_SUFFIX = ".elmo-tasks.", ".tmp"
_ABANDONED_SECONDS = 24 * 3600.0  # without a write, if locks cannot tell whether the writer still runs


@contextlib.contextmanager
def _temporary(parent: Path, target: Path, make: Callable[[str], tuple[Path, int]]) -> Iterator[tuple[Path, int]]:
    """Yields a temporary file or folder with an open descriptor, and removes it if it is still there.

    Its lock, which the kernel releases when the process ends, shows other processes that it is in use. The host in its
    name shows whether that lock can be relied on.

    Arguments:
        parent: the folder that it is made in.
        target: what errors name.
        make: makes it, with a name that has the prefix.
    """
    with write_errors(target):
        parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(parent)
        while True:
            temporary, handle = make(f"{_TEMPORARY_PREFIX}{_host()}.")
            with contextlib.suppress(OSError):  # the file system does not have locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if temporary.exists():  # no other process took it for a leftover before it was locked
                break
            os.close(handle)
    try:
        yield temporary, handle
    finally:
        with contextlib.suppress(OSError):  # the next command that writes to the folder removes it
            _remove(temporary)
        os.close(handle)


def _remove_leftovers(folder: Path) -> None:
    """Removes the temporary files and folders of processes that were killed."""
    for name in os.listdir(folder):
        if not (name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX)):
            continue
        with contextlib.suppress(OSError):  # it was moved or removed, or is another user's
            path, handle = _opened(folder / name)
            try:
                old = time.time() - os.fstat(handle).st_mtime > _ABANDONED_SECONDS
                ours = name.startswith(f"{_TEMPORARY_PREFIX}{_host()}.")
                if (ours or old) and _is_unlocked(handle, otherwise=old):
                    _remove(path)
            finally:
                os.close(handle)


def _is_unlocked(handle: int, *, otherwise: bool) -> bool:
    """Whether no process has locked an open file; then it is locked now. `otherwise`: if there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return otherwise
    return True


def _opened(path: Path) -> tuple[Path, int]:
    return path, os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _host() -> str:
    return re.sub(r"[^\w-]", "-", platform.node())


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def write_json(path: str | Path, value: Any) -> None:
    """Writes a value to a file as indented JSON (see `json_text`), atomically."""
    with atomic_write(path) as stream:
        stream.write(f"{json_text(value, indent=2)}\n".encode())
