"""Archives (`.tar.gz`) of known files. Nothing else in an archive is ever written to the disk."""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO

from elmo_tasks.atomic import atomic_write, write_errors
from elmo_tasks.errors import RunError
from elmo_tasks.limits import bounded, unpacked_numbers

# What reading a damaged archive can raise, except for errors of the operating system. A chain of headers is read by
# recursion, and the fields of headers are decoded without checks.
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, OverflowError, RecursionError)


def pack(files: Mapping[str, Path], archive: str | Path) -> None:
    """Writes files by their names in the archive, atomically. Links are packed as the files that they point to."""
    with atomic_write(archive) as stream, tarfile.open(fileobj=stream, mode="w:gz", dereference=True) as tar:
        for name, path in files.items():
            tar.add(path, arcname=name)


def unpack(archive: Path, names: Collection[str], folder: Path) -> None:
    """Writes the files of a run's archive into an empty folder, which is made if it is missing.

    Only the contents of members are used, and each is written under the known name that it equals. So links, devices,
    absolute paths and paths with `..` have no effect.

    Arguments:
        names: those that the archive may have, with `/` between a folder and a file.

    Raises:
        RunError: the archive is damaged, contains anything but regular files with these names, each once, or unpacks to
            far more than its size.
    """

    def place_of(member: tarfile.TarInfo) -> str:
        if member.name not in names:
            raise ValueError(f"contains {member.name[:200]!r}, which is not a file of a run")
        return member.name

    _unpack(archive, place_of, folder, "the archive of a run", "an archive that `elmo-tasks archive` has written")


def contains(archive: Path, name: str) -> bool:
    """Whether an archive has a file of this name; a damaged one does not, as far as it can be read."""
    try:
        with gzip.GzipFile(archive) as unzipped:
            stream = bounded(unzipped, unpacked_numbers(archive.stat().st_size), RunError)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                return any(member.name.removeprefix("./") == name for member in tar)
    except (*_DAMAGE, RunError):
        return False


def unpack_known(archive: Path, known: re.Pattern[str], folder: Path, kind: str, wanted: str) -> None:
    """Like `unpack`, for the archive of another program: files with other names are left out.

    Arguments:
        known: matches the whole names of the files that are wanted.
        kind, wanted: for messages, what the archive should be.

    Raises:
        RunError: also if the archive has links, devices, absolute paths or paths with `..`.
    """

    def place_of(member: tarfile.TarInfo) -> str | None:
        name = member.name.removeprefix("./")
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"contains {member.name[:200]!r}, a place outside of its folder")
        if not (member.isfile() or member.isdir()):
            raise ValueError(f"{member.name[:200]!r} is not a regular file")
        return name if member.isfile() and known.fullmatch(name) else None

    _unpack(archive, place_of, folder, kind, wanted)


def _unpack(
    archive: Path, place_of: Callable[[tarfile.TarInfo], str | None], folder: Path, kind: str, wanted: str
) -> None:
    """Writes each member at its place in the folder; members without one are left out."""

    def problem(text: str) -> RunError:
        return RunError(f"{archive}: {text}")

    folder.mkdir(exist_ok=True)
    try:
        with gzip.GzipFile(archive) as unzipped:
            stream = bounded(unzipped, unpacked_numbers(archive.stat().st_size), problem)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    if (place := place_of(member)) is not None:
                        _write_member(tar, member, folder / place)
            while stream.read(1 << 20):  # to the checksum at the end
                pass
    except _DAMAGE as error:
        raise problem(f"damaged, or not {kind} ({error}); wanted {wanted}") from None


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Writes a member's content; raises `ValueError` if it must not be in the archive."""
    # A sparse file stores its zeros as a number.
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.sparse is not None:
        raise ValueError(f"{member.name!r} is not a regular file")
    if path.exists():
        raise ValueError(f"contains {member.name!r} twice")
    path.parent.mkdir(exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None  # it is a regular file
    with content, write_errors(path, member.size), open(path, "xb") as target:
        while chunk := _read(content):
            target.write(chunk)


def _read(content: IO[bytes]) -> bytes:
    try:
        return content.read(1 << 20)
    except gzip.BadGzipFile as error:  # an OSError, but not of what is written
        raise ValueError(str(error)) from None
