"""Files of other programs: those at an address whose hash is not known yet, state dicts, and zip archives of biLMs."""

from __future__ import annotations

import fnmatch
import zipfile
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from elmo_tasks.elmo.bilm_files import BiLMFormat, file_patterns
from elmo_tasks.errors import ElmoTasksError, WeightsError, one_line
from elmo_tasks.files.atomic import atomic_folder, write_errors
from elmo_tasks.files.cache import kept_hash, used_cache
from elmo_tasks.files.downloads import download, downloaded, place_of, published_file, split_address
from elmo_tasks.files.limits import ADVICE, unpacked_numbers
from elmo_tasks.files.paths import is_clutter
from elmo_tasks.files.tensor_files import DAMAGED_STATE
from elmo_tasks.files.text import ZIP_ERRORS

_CHUNK = 1 << 20
_SAFE_UNPICKLER = "2.10"  # of torch: CVE-2025-32434 and CVE-2026-24747 pass `weights_only=True` in earlier versions


def fetched(address: str) -> tuple[Path, str]:
    """The file at an address, and the address with its hash; as `downloaded`, but the address may lack the hash."""
    if "#" in address or published_file(address):
        path = downloaded(address)
        address, _ = split_address(address)
    else:
        path = place_of(address)
        if not path.is_file():
            download(address, path, None)
    return path, f"{address}#sha256={kept_hash(path)}"


def read_pickled_tensors(path: Path, error: type[ElmoTasksError]) -> dict[str, Tensor]:
    """Reads a state dict that another program has pickled with torch. Code in it is refused and never run.

    Raises:
        ElmoTasksError: of the class `error`, if the file is damaged, holds anything but tensors, or unpacks to far more
            than its size; or if this torch may run code in a pickle.
    """
    if torch.__version__ < _SAFE_UNPICKLER:
        raise error(
            f"{path}: torch {torch.__version__} may run code in such a file; install {_SAFE_UNPICKLER} or later"
        )
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (*DAMAGED_STATE, MemoryError, OSError) as problem:
        reason = one_line(problem)
        if "Unsupported" in reason or "Weights only load failed" in reason:
            reason = "it contains more than tensors, perhaps code, which is not run"
        raise error(f"{path}: damaged, or not a state dict ({reason})") from None
    if not isinstance(tensors, dict):
        raise error(f"{path}: holds a {type(tensors).__name__}; expected a state dict")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor) or tensor.layout != torch.strided:
            raise error(f"{path}: {str(name)[:80]!r} is not a tensor; expected a state dict of tensors")
    # A hostile file can repeat the same number endlessly.
    if (size := sum(tensor.nbytes for tensor in tensors.values())) > (most := unpacked_numbers(path.stat().st_size)):
        raise error(f"{path}: unpacks to {size:,} bytes; expected at most {most:,}; {ADVICE}")
    return dict(tensors)


def unzipped(archive: Path) -> Path:
    """The folder in the cache with the files of a biLM in a zip archive, as NLPL has them, which is unpacked once.

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
