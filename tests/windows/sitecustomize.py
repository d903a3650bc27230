"""Lets a Python process find what it would find on Windows, as far as the package can notice.

Python imports this module first if its folder is on `PYTHONPATH`, also in the processes that a process starts.

- Code of `elmo_tasks` has no module and no attribute that Windows lacks. Other packages, which have code of their own
  for Windows, see everything. Processes are spawned.
- `select` only takes sockets, and `fsync` only files that were opened for writing.
- Locks of `filelock` remove their file after they were released.
- No file can be renamed, replaced, truncated or removed while this process has it open or memory-mapped.
- No file or folder can be made with a name that Windows does not allow.
"""

import builtins
import contextlib
import errno
import multiprocessing
import os
import re
import select
import signal
import socket
import stat
import sys
import types
from collections.abc import Callable
from typing import Any

_MODULES = {"fcntl", "grp", "pwd", "resource"}
_LACKING: dict[str, set[str]] = {
    "os": {"fork", "forkpty", "getuid", "geteuid", "getgid", "getpgid", "killpg", "mkfifo", "sched_getaffinity",
           "statvfs", "sysconf", "O_ASYNC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK"},
    "signal": {"SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2"},
    "socket": {"AF_UNIX"},
}  # fmt: skip
_FORBIDDEN = re.compile(
    r'.*[<>:"\\|?*\x00-\x1f].*|.*[. ]|(con|prn|aux|nul|com\d|lpt\d)(\..*)?', re.IGNORECASE | re.DOTALL
)
_import = builtins.__import__


class _Lacking(types.ModuleType):
    """A module without some of its attributes, and with others in their place."""

    def __init__(self, module: types.ModuleType, without: set[str], **others: Callable[..., Any]) -> None:
        super().__init__(module.__name__)
        self._module, self._without = module, without
        self.__dict__.update(others)

    def __getattr__(self, name: str) -> Any:
        if name in self._without:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(self._module, name)


def _select(read: Any, write: Any, failed: Any, timeout: Any = None) -> Any:
    if not all(isinstance(each, socket.socket) for each in (*read, *write, *failed)):
        raise OSError(10038, "An operation was attempted on something that is not a socket")
    return select.select(read, write, failed, timeout)


def _fsync(descriptor: int) -> None:
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as stream:
        flags = int(next(line for line in stream if line.startswith("flags:")).split()[1], 8)
    if not flags & (os.O_WRONLY | os.O_RDWR):
        raise OSError(errno.EBADF, "Bad file descriptor")
    os.fsync(descriptor)


def _context(method: str | None = None) -> Any:
    if method not in (None, "spawn"):
        raise ValueError(f"cannot find context for {method!r}")
    return multiprocessing.get_context("spawn")


def _locks_like_windows(filelock: Any) -> types.ModuleType:
    """The module `filelock` with the lock that it has on Windows."""

    class WindowsFileLock(filelock.FileLock):
        def _release(self) -> None:
            super()._release()
            with contextlib.suppress(OSError):
                os.unlink(self.lock_file)

    return _Lacking(filelock, set(), FileLock=WindowsFileLock)


_LIKE_WINDOWS: dict[str, types.ModuleType] = {
    "os": _Lacking(os, _LACKING["os"], fsync=_fsync),
    "signal": _Lacking(signal, _LACKING["signal"]),
    "socket": _Lacking(socket, _LACKING["socket"]),
    "select": _Lacking(select, {"epoll", "poll"}, select=_select),
    "multiprocessing": _Lacking(multiprocessing, set(), get_context=_context, get_all_start_methods=lambda: ["spawn"]),
}


def _import_like_windows(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> types.ModuleType:
    found = _import(name, globals, locals, fromlist, level)
    if not level and str((globals or {}).get("__name__", "")).partition(".")[0] == "elmo_tasks":
        if name in _MODULES:
            raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
        if name == "filelock" and name not in _LIKE_WINDOWS:
            _LIKE_WINDOWS[name] = _locks_like_windows(found)
        return _LIKE_WINDOWS.get(found.__name__, found)
    return found


def _open_files() -> tuple[set[str], set[str]]:
    """The files that this process has open, and those that are memory-mapped."""
    opened = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISREG(os.stat(f"/proc/self/fd/{number}").st_mode):
                opened.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # that of the folder /proc/self/fd itself
            pass
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
        mapped = {line.rstrip("\n").split(maxsplit=5)[5] for line in stream if " /" in line}
    return opened, mapped


def _place(path: Any, folder: int = -1) -> str:
    """The path of a file, perhaps relative to an open folder; a link is not followed."""
    path = os.fsdecode(path)
    start = os.getcwd() if folder == -1 else os.readlink(f"/proc/self/fd/{folder}")
    parent, name = os.path.split(os.path.join(start, path))
    return os.path.join(os.path.realpath(parent), name)


def _refuse(path: str, files: set[str]) -> None:
    """Raises Windows' error if one of the files is the path, or is below it."""
    if in_use := sorted(file for file in files if file == path or file.startswith(f"{path}/")):
        if report := os.environ.get("REFUSED_FILES"):
            with open(report, "a", encoding="utf-8") as stream:
                stream.write(f"{in_use[0]}\n")
        raise PermissionError(errno.EACCES, "The process cannot access the file: it is used by this process", path)


def _check_name(path: str) -> None:
    if _FORBIDDEN.fullmatch(os.path.basename(path)):
        raise OSError(errno.EINVAL, "Windows does not allow this name", path)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path, _, flags = arguments
        if os.path.isdir(path) or os.fsdecode(path).startswith("/dev/"):  # a temporary file is opened by its folder
            return
        if flags & os.O_CREAT:
            _check_name(_place(path))
        if flags & os.O_TRUNC:
            _refuse(_place(path), _open_files()[1])
    elif event == "os.mkdir":
        _check_name(_place(arguments[0], arguments[2]))
    elif event == "os.remove":
        _refuse(_place(*arguments), set.union(*_open_files()))
    elif event == "os.rename":
        source, target = _place(arguments[0], arguments[2]), _place(arguments[1], arguments[3])
        _check_name(target)
        files = set.union(*_open_files())
        _refuse(source, files)
        _refuse(target, files)


multiprocessing.set_start_method("spawn")
builtins.__import__ = _import_like_windows
sys.addaudithook(_watch)
