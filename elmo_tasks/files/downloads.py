"""Files at addresses, `https://HOST/FILE#sha256=HASH`: downloaded once into the cache, and checked."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import urlsplit

from elmo_tasks.errors import RemoteError
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.cache import human_size, used_cache
from elmo_tasks.files.hashes import kept_hash
from elmo_tasks.files.hub import is_offline

logger = logging.getLogger(__name__)

_ADDRESS = re.compile(r"(https?):/+([^#\s]+)(?:#(.*))?")  # a path has one slash for two
_HASH = re.compile(r"sha256=([0-9a-f]{64})")
_SECONDS = 60.0  # to wait for more bytes
_CHUNK = 1 << 20


def is_address(name: str | Path) -> bool:
    """Whether a name is an address, and not a path."""
    return _ADDRESS.match(str(name)) is not None


def split_address(name: str | Path) -> tuple[str, str]:
    """An address without its hash, and the hash; raises `RemoteError` if it has no SHA-256."""
    found = _ADDRESS.fullmatch(str(name))
    hashed = found and _HASH.fullmatch(found[3] or "")
    if not found or not hashed:
        address = str(name).partition("#")[0]
        raise RemoteError(
            f"{name}: expected #sha256= and the 64 digits of the file's SHA-256 at the end; "
            f"`elmo-tasks fetch {address}` downloads the file and prints them"
        )
    return f"{found[1]}://{found[2]}", hashed[1]


def downloaded(name: str | Path, *, local_only: bool = False) -> Path:
    """The file at an address with its hash. It is downloaded if the cache does not have it, or has another content.

    Arguments:
        local_only: never downloads anything.

    Raises:
        RemoteError: the address has no hash, the file cannot be downloaded, or it has another hash.
        WriteError: the disk is full.
    """
    address, expected = split_address(name)
    path = place_of(address)
    if path.is_file() and kept_hash(path) == expected:
        return path
    if local_only:
        raise RemoteError(f"{address}: not downloaded to this machine yet")
    _download(address, path, expected)
    return path


def fetched(address: str) -> tuple[Path, str]:
    """The file at an address, and the address with its hash; as `downloaded`, but the address may lack the hash."""
    if "#" in address:
        return downloaded(address), address
    path = place_of(address)
    if not path.is_file():
        _download(address, path, None)
    return path, f"{address}#sha256={kept_hash(path)}"


def place_of(address: str) -> Path:
    """Where the cache has the file of an address, or would have it."""
    name = PurePosixPath(urlsplit(address).path).name
    return used_cache("downloads") / hashlib.sha256(address.encode()).hexdigest() / (name.strip(".") or "file")


def _download(address: str, path: Path, expected: str | None) -> None:
    """Writes the file of an address; after an error, the cache is as it was before."""
    import http.client
    import urllib.error
    import urllib.request

    if is_offline():
        raise RemoteError(f"{address}: not downloaded to this machine yet, and HF_HUB_OFFLINE is set")
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as response, atomic_write(path) as stream:
            length = response.headers["Content-Length"]
            size = int(length) if length and length.isdecimal() else None
            logger.info("downloading %s%s", address, f" ({human_size(size)})" if size else "")
            found, count = _copy(response, stream, path.name, size)
            if size is not None and count < size:
                raise RemoteError(f"{address}: the download ended after {count:,} of {size:,} bytes; try again")
            if expected not in (None, found):
                raise RemoteError(
                    f"{address}: not the expected file: expected the SHA-256 {expected}, got {found}; if the file "
                    "was replaced on purpose, name its new hash"
                )
    except urllib.error.HTTPError as problem:
        problem.close()
        raise RemoteError(f"{address}: cannot be downloaded: {problem.code} {problem.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as problem:  # a file that cannot be written is a WriteError
        reason = problem.reason if isinstance(problem, urllib.error.URLError) else problem
        raise RemoteError(f"{address}: cannot be downloaded: {reason}; check the address and the network") from None


def _copy(source: IO[bytes], target: IO[bytes], name: str, size: int | None) -> tuple[str, int]:
    """Copies all bytes, with a progress bar. Returns their SHA-256 and their number."""
    from elmo_tasks.progress import progress_bar

    digest, count = hashlib.sha256(), 0
    with progress_bar() as bar:
        task = bar.add_task(f"{name} (MB)", total=None if size is None else size / 1e6, note="")
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            target.write(chunk)
            count += len(chunk)
            bar.advance(task, len(chunk) / 1e6)
    return digest.hexdigest(), count
