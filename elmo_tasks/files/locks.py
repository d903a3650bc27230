"""The lock of a run's folder: one process at a time writes there."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import filelock

from elmo_tasks.errors import RunError, WriteError
from elmo_tasks.files.atomic import atomic_write

logger = logging.getLogger(__name__)

_LOCK, _HOLDER = ".lock", ".lock.json"


@contextlib.contextmanager
def locked(folder: Path, *, writes: bool = True) -> Iterator[None]:
    """Holds the lock of a folder. The kernel releases it even if the process is killed.

    The folder is made if it does not exist. If it is still empty at the end, it is removed again. Where locks do not
    work, a warning says so.

    Arguments:
        writes: whether the block writes to the folder. If not, a folder that cannot be written is not locked.

    Raises:
        RunError: another process holds the lock; it is named. Or there is a file in the place of the folder.
        OSError: the lock's file cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file; expected the name of a folder")
    lock, made = filelock.FileLock(folder / _LOCK), _make(folder)
    try:
        with contextlib.ExitStack() as held:
            try:
                _acquire(lock, folder)
                held.callback(_release, lock, folder)
            except PermissionError:
                if writes:
                    raise
            except (OSError, NotImplementedError) as error:
                logger.warning("%s: no lock (%s); make sure that no other command writes there", folder, error)
            yield
    finally:
        with contextlib.suppress(OSError):  # not empty
            for path in made:
                path.rmdir()


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Locks a file, which is made if it does not exist, and yields whether no other process has locked it.

    Unlike that of `locked`, the file stays. Where locks do not work, a warning says so, and the file counts as locked.

    Raises:
        PermissionError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, is_ours = filelock.FileLock(path), True
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        is_ours = False
    except PermissionError:
        raise
    except (OSError, NotImplementedError) as error:
        logger.warning("%s: no lock (%s); make sure that no other command works there", path, error)
    try:
        yield is_ours
    finally:
        lock.release()


def _make(folder: Path) -> list[Path]:
    """Makes a folder with its parents, and returns those that were missing, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _acquire(lock: filelock.BaseFileLock, folder: Path) -> None:
    """Takes the lock and writes down who holds it; raises `RunError` if another process does."""
    while True:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise RunError(
                f"{folder}: in use by {_holder(folder)}; wait until it has ended, stop it, or choose another folder"
            ) from None
        if (folder / _LOCK).exists():  # otherwise the process that held the lock has just removed its file
            break
        lock.release()
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    now = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
    holder = {"process": os.getpid(), "host": platform.node(), "command": command, "since": now}
    # If the disk is full, it is not known who holds the lock.
    with contextlib.suppress(WriteError), atomic_write(folder / _HOLDER) as stream:
        stream.write(json.dumps(holder).encode())  # ASCII: an argument may have bytes that are not UTF-8


def _release(lock: filelock.BaseFileLock, folder: Path) -> None:
    for name in (_HOLDER, _LOCK):
        (folder / name).unlink(missing_ok=True)
    lock.release()


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / _HOLDER).read_text(encoding="utf-8"))
        return f"process {holder['process']} on {holder['host']} since {holder['since']} ({holder['command']})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"
