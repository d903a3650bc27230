"""Zip archives of biLMs, as the NLPL vectors repository has them, unpacked into the cache."""

from __future__ import annotations

import fnmatch
import zipfile
from pathlib import Path, PurePosixPath

from elmo_tasks.elmo.bilm_files import BiLMFormat, file_patterns
from elmo_tasks.errors import WeightsError
from elmo_tasks.files.atomic import atomic_folder, write_errors
from elmo_tasks.files.cache import kept_hash, used_cache
from elmo_tasks.files.limits import ADVICE, unpacked_numbers
from elmo_tasks.files.paths import is_clutter
from elmo_tasks.files.text import ZIP_ERRORS

_CHUNK = 1 << 20


def unzipped(archive: Path) -> Path:
    """The folder in the cache with the files of a biLM in a zip archive, which is unpacked once.

    Only the contents of files are used, and each is written under its name without its folders. So links, absolute
    paths and paths with `..` have no effect.

    Raises:
        WeightsError: the archive is damaged, has two files of the same name, or unpacks to far more than its size.
    """
    target = used_cache("archives") / kept_hash(archive)
    if not target.is_dir():
        with atomic_folder(target) as folder:
            try:
                _unzip(archive, folder)
            except ZIP_ERRORS as error:
                raise WeightsError(f"{archive}: damaged, or not a zip archive ({error})") from None
    return target


ZIP = BiLMFormat((), lambda path: path.is_file() and zipfile.is_zipfile(path), unzipped)


def _unzip(archive: Path, folder: Path) -> None:
    patterns = file_patterns()
    left = most = unpacked_numbers(archive.stat().st_size)
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            name = PurePosixPath(member.filename).name
            is_known = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
            if member.is_dir() or is_clutter(member.filename) or not is_known:
                continue
            path = folder / name
            if path.exists():
                raise WeightsError(f"{archive}: has two files {name}; expected the files of one biLM")
            with members.open(member) as content, write_errors(path, member.file_size), open(path, "xb") as copy:
                while chunk := content.read(_CHUNK):
                    if (left := left - len(chunk)) < 0:
                        raise WeightsError(f"{archive}: unpacks to more than {most:,} bytes; {ADVICE}")
                    copy.write(chunk)
