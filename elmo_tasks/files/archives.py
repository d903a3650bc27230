"""Archives (`.tar.gz`) of known files. Nothing else in an archive is ever written to the disk."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from elmo_tasks.errors import RunError
from elmo_tasks.files.atomic import atomic_write, write_errors
from elmo_tasks.files.limits import bounded, unpacked_numbers
from elmo_tasks.files.paths import is_clutter

# What reading a damaged archive can raise, except for errors of the operating system. A chain of headers is read by
# recursion, and the fields of headers are decoded without checks.
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, OverflowError, RecursionError)


def pack(files: Mapping[str, Path], archive: str | Path) -> None:
    """Writes files by their names in the archive, atomically. Links are packed as the files that they point to."""
    # Weights hardly get smaller: by 1 % more at level 9, which takes three times as long.
    with (
        atomic_write(archive) as stream,
        tarfile.open(fileobj=stream, mode="w:gz", compresslevel=3, dereference=True) as tar,
    ):
        for name, path in files.items():
            tar.add(path, arcname=name)


def unpack(
    archive: Path,
    folder: Path,
    known: Callable[[str], bool],
    *,
    kind: str = "the archive of a run",
    expected: str = "an archive that `elmo-tasks archive` or AllenNLP has written",
    only_known: bool = True,
) -> None:
    """Writes the known files of an archive into an empty folder, which is made if it is missing.

    Only the contents of members are used, and each is written under the known name that it equals, with or without one
    folder around all of them. Folders of their own and what `is_clutter` are left out.

    Arguments:
        known: whether a file of this name is to be unpacked; `/` stands between a folder and a file.
        kind, expected: for messages, what the archive should be.
        only_known: refuses files with other names, which are otherwise left out.

    Raises:
        RunError: the archive is damaged, contains links, devices or paths outside of it, has a file twice, or unpacks
            to far more than its size.
    """

    def problem(text: str) -> RunError:
        return RunError(f"{archive}: {text}")

    folder.mkdir(exist_ok=True)
    inner, tops = folder / ".inner", dict[str, str]()  # files in a folder wait there; one name of each such folder
    try:
        with gzip.GzipFile(archive) as unzipped:
            stream = bounded(unzipped, unpacked_numbers(archive.stat().st_size), problem)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    name, shown = member.name.removeprefix("./"), repr(member.name[:200])
                    if name.startswith("/") or ".." in name.split("/"):
                        raise ValueError(f"contains {shown}, a place outside of its folder")
                    if not (member.isfile() or member.isdir()):
                        raise ValueError(f"{shown} is not a regular file")
                    if member.isdir() or is_clutter(name):
                        continue
                    rest = name.partition("/")[2]  # the name in a folder around all files
                    if known(name):
                        _write_member(tar, member, folder / name)
                    elif known(rest):
                        tops.setdefault(name.removesuffix(rest), shown)
                        if len(tops) == 1:
                            _write_member(tar, member, inner / rest)
                    elif only_known:
                        raise ValueError(f"contains {shown}, which is not a file of a run")
            while stream.read1():  # to the checksum at the end
                pass
        # The files of the only folder in an archive get its place, unless there are files outside of it.
        outside = any(path != inner for path in folder.iterdir())
        if tops and (only_known if outside else len(tops) > 1):
            raise ValueError(f"contains {[*tops.values()][-1]} and other files of the same kind elsewhere")
        for path in inner.iterdir() if tops and not outside else ():
            path.rename(folder / path.name)
        shutil.rmtree(inner, ignore_errors=True)
    except _DAMAGE as error:
        raise problem(f"damaged, or not {kind} ({error}); expected {expected}") from None


def contains(archive: Path, name: str) -> bool:
    """Whether an archive has a file of this name, perhaps in a folder; a damaged one does not, if it cannot be read."""
    try:
        with gzip.GzipFile(archive) as unzipped:
            stream = bounded(unzipped, unpacked_numbers(archive.stat().st_size), RunError)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                names = (member.name.removeprefix("./") for member in tar)
                return any(name in (whole, whole.partition("/")[2]) for whole in names)
    except (*_DAMAGE, RunError):
        return False


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Writes a member's content; raises `ValueError` if it must not be in the archive."""
    # A sparse file stores its zeros as a number.
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.sparse is not None:
        raise ValueError(f"{member.name!r} is not a regular file")
    if path.exists():
        raise ValueError(f"contains {member.name!r} twice")
    path.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None  # it is a regular file
    with content, write_errors(path, member.size), open(path, "xb") as target:
        try:
            shutil.copyfileobj(content, target)
        except gzip.BadGzipFile as error:  # an OSError, but not of what is written
            raise ValueError(str(error)) from None
