"""What is downloaded once: files at addresses, and models on the Hugging Face hub.

An address is `https://HOST/FILE#sha256=HASH`; its file is checked, and kept in the cache. Addresses of published files
that are known (the hook `published_file`) need no hash. A model on the hub is
`hub:ORG/NAME[@REVISION]`; its files are kept in the hub's own cache.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from elmo_tasks import hooks
from elmo_tasks.errors import DISK_FULL_ERRORS, RemoteError, WriteError, one_line, some_of
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.cache import human_size, kept_hash, used_cache
from elmo_tasks.files.paths import portable_name

logger = logging.getLogger(__name__)

_ADDRESS = re.compile(r"(https?):/+([^#\s]+)(?:#(.*))?")  # a path has one slash for two
_HASH = re.compile(r"sha256=([0-9a-f]{64})")
_SECONDS = 60.0  # to wait for more bytes
_CHUNK = 1 << 20

HUB = "hub:"
_HUB_NAME = re.compile(r"hub:([\w.-]+(?:/[\w.-]+)?)(?:@([^@\s]+))?")
_HUB_EXPECTED = f"expected {HUB}ORG/NAME or {HUB}ORG/NAME@REVISION"


def is_address(name: str | Path) -> bool:
    """Whether a name is an address, and not a path."""
    return _ADDRESS.match(str(name)) is not None


def published_file(address: str) -> tuple[str, str | None] | None:
    """The publisher's address of a known file, and its SHA-256, None if that is not known; None for other addresses."""
    return next(filter(None, (find(address) for find in hooks.everything("published_file"))), None)


def split_address(name: str | Path) -> tuple[str, str | None]:
    """An address without its hash, and the hash; that of a published file may be None.

    Raises:
        RemoteError: it has no SHA-256, and is not that of a published file.
    """
    found = _ADDRESS.fullmatch(str(name))
    if found and found[3] is None and (published := published_file(f"{found[1]}://{found[2]}")):
        return published
    hashed = found and _HASH.fullmatch(found[3] or "")
    if not found or not hashed:
        address = str(name).partition("#")[0]
        raise RemoteError(
            f"{name}: expected #sha256= and the 64 digits of the file's SHA-256 at the end; "
            f"`elmo-tasks fetch {address}` downloads the file and prints them"
        )
    return f"{found[1]}://{found[2]}", hashed[1]


def downloaded(name: str | Path, *, local_only: bool = False) -> Path:
    """The file at an address with its hash, or of a published file.

    It is downloaded if the cache does not have it, or has another content; with `local_only`, that is an error.

    Raises:
        RemoteError: the address has no hash, the file cannot be downloaded, or it has another hash.
        WriteError: the disk is full.
    """
    address, expected = split_address(name)
    path = place_of(address)
    if path.is_file() and expected in (None, kept_hash(path)):
        return path
    if local_only:
        raise RemoteError(f"{address}: not downloaded to this machine yet")
    download(address, path, expected)
    return path


def place_of(address: str) -> Path:
    """Where the cache has the file of an address, or would have it."""
    name = PurePosixPath(urlsplit(address).path).name
    folder = used_cache("downloads") / hashlib.sha256(address.encode()).hexdigest()
    return folder / (portable_name(name.strip(".")) or "file")


def download(address: str, path: Path, expected: str | None) -> None:
    """Writes the file of an address, with the SHA-256 `expected`; after an error, the cache is as it was before."""
    import http.client
    import urllib.error
    import urllib.request

    from elmo_tasks.progress import progress_bar

    remedy = f"or give the path of {path.name}, or put it into {path.parent}"
    if is_offline():
        raise RemoteError(f"{address}: not downloaded to this machine yet, and HF_HUB_OFFLINE is set; {remedy}")
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as response, atomic_write(path) as stream:
            length = response.headers["Content-Length"]
            size = int(length) if length and length.isdecimal() else None
            logger.info("downloading %s%s", address, f" ({human_size(size)})" if size else "")
            digest, count = hashlib.sha256(), 0
            with progress_bar() as bar:
                task = bar.add_task(f"{path.name} (MB)", total=None if size is None else size / 1e6, note="")
                while chunk := response.read(_CHUNK):
                    digest.update(chunk)
                    stream.write(chunk)
                    count += len(chunk)
                    bar.advance(task, len(chunk) / 1e6)
            found = digest.hexdigest()
            if size is not None and count < size:
                raise RemoteError(f"{address}: the download ended after {count:,} of {size:,} bytes; try again")
            if expected not in (None, found):
                raise RemoteError(
                    f"{address}: not the expected file: expected the SHA-256 {expected}, got {found}; if the file "
                    "was replaced on purpose, name its new hash"
                )
    except urllib.error.HTTPError as problem:
        problem.close()
        raise RemoteError(f"{address}: cannot be downloaded: {problem.code} {problem.reason}; {remedy}") from None
    except (OSError, http.client.HTTPException, ValueError) as problem:  # a file that cannot be written is a WriteError
        reason = problem.reason if isinstance(problem, urllib.error.URLError) else problem
        advice = f"check the address and the network, {remedy}"
        raise RemoteError(f"{address}: cannot be downloaded: {reason}; {advice}") from None


def is_offline() -> bool:
    """Whether nothing may be downloaded: `HF_HUB_OFFLINE=1` is in the environment."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def hub_folder(source: str, patterns: Sequence[str], expected: str, *, local_only: bool = False) -> Path:
    """The folder with the files of a model on the hub. They are downloaded once; a process asks the hub only once.

    Arguments:
        source: `hub:ORG/NAME`, with `@REVISION` for a branch, a tag or a commit other than the newest.
        patterns: the names of the files that are needed; no others are downloaded.
        expected: what messages say a model should have.
        local_only: never asks the hub.

    Raises:
        RemoteError: there is no such model, or it is not for everyone, or the hub cannot be reached.
        WriteError: the disk is full.
    """
    from huggingface_hub import constants, errors

    name, revision = _hub_parts(source)
    try:
        folder = _hub_snapshot(name, revision, tuple(patterns), local_only)
    except Exception as problem:  # of the library and of those that it uses, of any class
        if isinstance(problem, OSError) and problem.errno in DISK_FULL_ERRORS:
            place = problem.filename or constants.HF_HUB_CACHE
            raise WriteError(place, problem, remedy="Free some space there, or set HF_HOME to another folder") from None
        if local_only:
            raise RemoteError(f"{source}: not downloaded to this machine yet") from None
        if is_offline():
            raise RemoteError(f"{source}: not downloaded to this machine yet, and HF_HUB_OFFLINE is set") from None
        cause = problem.__cause__ if isinstance(problem, errors.LocalEntryNotFoundError) else problem
        reason = one_line(cause if isinstance(cause, Exception) else problem, 500)
        raise RemoteError(f"{source}: cannot be downloaded from the hub: {reason}") from None
    if not folder.is_dir():
        raise RemoteError(f"{source}: has none of the files {some_of(patterns)}; {expected}")
    return folder


def pinned(source: str) -> str:
    """The name of a downloaded model with its commit, which names the same files also when the model changes."""
    folder = hub_folder(source, (), _HUB_EXPECTED, local_only=True)
    return f"{HUB}{_hub_parts(source)[0]}@{folder.name}"


def _hub_parts(source: str) -> tuple[str, str | None]:
    """The name and the revision in `hub:ORG/NAME@REVISION`."""
    if not (found := _HUB_NAME.fullmatch(source)):
        raise RemoteError(f"{source}: not the name of a model on the hub; {_HUB_EXPECTED}")
    return found[1], found[2]


@functools.lru_cache
def _hub_snapshot(name: str, revision: str | None, patterns: tuple[str, ...], local_only: bool) -> Path:
    from huggingface_hub import snapshot_download

    folder = snapshot_download(name, revision=revision, allow_patterns=list(patterns), local_files_only=local_only)
    return Path(folder)
