"""Notices every access to a folder, also by libraries that are not written in Python (Linux only)."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

# The bits of inotify: read, written, attributes, opened, created, deleted, moved in
_WATCHED = 0x1 | 0x2 | 0x4 | 0x20 | 0x100 | 0x200 | 0x80


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Yields a list, to which the accesses to the files of a folder are added at the end of the block."""
    library = ctypes.CDLL(None, use_errno=True)
    handle = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    seen: list[str] = []
    try:
        if handle < 0 or library.inotify_add_watch(handle, os.fsencode(folder), _WATCHED) < 0:
            raise OSError(ctypes.get_errno(), "inotify does not work", str(folder))
        yield seen
        with contextlib.suppress(BlockingIOError):
            while events := os.read(handle, 1 << 16):
                seen.append(f"accesses to {folder}, as inotify tells them: {events!r}")
    finally:
        if handle >= 0:
            os.close(handle)
