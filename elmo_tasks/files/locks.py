"""Locks that say which process holds them: one process at a time writes to a run's folder."""

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
    made = [path for path in (folder, *folder.parents) if not path.exists()]  # the innermost first
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(exclusive(lock := folder / ".lock"))
            except filelock.Timeout:
                raise RunError(
                    f"{folder}: in use by {holder(lock)}; wait until it has ended, stop it, or choose another folder"
                ) from None
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
def exclusive(path: Path, waiting_for: str | None = None) -> Iterator[None]:
    """Holds the lock of a file. A file next to it says who does. Both are made, and removed at the end.

    The kernel releases the lock even if the process is killed; its files then stay, and do no harm.

    Arguments:
        waiting_for: what another process that holds the lock does: then the log says so, and this one waits.

    Raises:
        filelock.Timeout: another process holds the lock, and `waiting_for` is not given.
        OSError, NotImplementedError: locks do not work here.
    """
    lock = filelock.FileLock(path)
    while not (lock.is_locked and path.exists()):  # who held the lock may have just removed its file
        lock.release()
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            if waiting_for is None:
                raise
            logger.info("waiting for %s, which %s", holder(path), waiting_for)
            lock.acquire()
    try:
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
        now = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        found = {"process": os.getpid(), "host": platform.node(), "command": command, "since": now}
        # If the disk is full, it is not known who holds the lock.
        with contextlib.suppress(WriteError), atomic_write(_holder_file(path)) as stream:
            stream.write(json.dumps(found).encode())  # ASCII: an argument may have bytes that are not UTF-8
        yield
    finally:
        for file in (_holder_file(path), path):
            with contextlib.suppress(PermissionError):  # Windows keeps open files; there filelock removes its own
                file.unlink(missing_ok=True)
        lock.release()


def holder(path: Path) -> str:
    """Who holds an `exclusive` lock, in words."""
    try:
        found = json.loads(_holder_file(path).read_text(encoding="utf-8"))
        return f"process {found['process']} on {found['host']} since {found['since']} ({found['command']})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"


def _holder_file(path: Path) -> Path:
    return Path(f"{path}.json")
