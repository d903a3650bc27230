"""Notices every access to a folder, also by libraries that are not written in Python (Linux only)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_ACCESS, _MODIFY, _ATTRIBUTES, _OPEN, _CREATE, _DELETE, _MOVED_IN = 0x1, 0x2, 0x4, 0x20, 0x100, 0x200, 0x80
_NAMES = {_ACCESS: "read", _MODIFY: "written", _OPEN: "opened", _CREATE: "created", _DELETE: "deleted"}
_EVENT = struct.Struct("iIII")


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Yields a list, to which the accesses to the files of a folder are added at the end of the block."""
    library = ctypes.CDLL(None, use_errno=True)
    handle = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    seen: list[str] = []
    try:
        mask = _ACCESS | _MODIFY | _ATTRIBUTES | _OPEN | _CREATE | _DELETE | _MOVED_IN
        if handle < 0 or library.inotify_add_watch(handle, os.fsencode(folder), mask) < 0:
            raise OSError(ctypes.get_errno(), "inotify does not work", str(folder))
        yield seen
        with contextlib.suppress(BlockingIOError):
            while data := os.read(handle, 1 << 16):
                seen += _events(data)
    finally:
        if handle >= 0:
            os.close(handle)


def _events(data: bytes) -> Iterator[str]:
    offset = 0
    while offset < len(data):
        _, mask, _, length = _EVENT.unpack_from(data, offset)
        offset += _EVENT.size
        name = data[offset : offset + length].rstrip(b"\0").decode(errors="replace")
        offset += length
        actions = [action for bit, action in _NAMES.items() if mask & bit]
        yield f"{name or 'the folder'} was {' and '.join(actions) or 'changed'}"
