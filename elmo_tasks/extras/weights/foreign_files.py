"""Files of other programs: those at an address whose hash is not known yet, and state dicts that torch has pickled."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from elmo_tasks.errors import ElmoTasksError, one_line
from elmo_tasks.files.cache import kept_hash
from elmo_tasks.files.downloads import download, downloaded, place_of, published_file, split_address
from elmo_tasks.files.limits import ADVICE, unpacked_numbers
from elmo_tasks.files.tensor_files import DAMAGED_STATE

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
