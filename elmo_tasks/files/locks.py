"""Locks: one process at a time writes to a run's folder."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import filelock

from elmo_tasks.errors import RunError

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def locked(folder: Path, *, writes: bool = True) -> Iterator[None]:
    """Holds the lock of a folder. The kernel releases it even if the process is killed.

    The folder is made if it does not exist. If it is still empty at the end, it is removed again. Where locks do not
    work, a warning says so.

    Arguments:
        writes: whether the block writes to the folder. If not, a folder that cannot be written is not locked.

    Raises:
        RunError: another process holds the lock. Or there is a file in the place of the folder.
        OSError: the lock's file cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file; expected the name of a folder")
    made = _make(folder)
    try:
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(exclusive(folder / ".lock"))
            except filelock.Timeout:
                message = "in use by another process; wait until it has ended, stop it, or choose another folder"
                raise RunError(f"{folder}: {message}") from None
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
    """Holds the lock of a file, which is made, and removed at the end.

    The kernel releases the lock even if the process is killed; its file then stays, and does no harm.

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
            logger.info("waiting for another process, which %s", waiting_for)
            lock.acquire()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


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
