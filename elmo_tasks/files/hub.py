"""Models on the Hugging Face hub, `hub:ORG/NAME[@REVISION]`: downloads, into the hub's own cache."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_tasks.errors import DISK_FULL_ERRORS, RemoteError, WriteError, one_line, some_of

HUB = "hub:"
_NAME = re.compile(r"hub:([\w.-]+(?:/[\w.-]+)?)(?:@([^@\s]+))?")
_EXPECTED = f"expected {HUB}ORG/NAME or {HUB}ORG/NAME@REVISION"


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
    name, revision = _parts(source)
    with _errors(source, local_only=local_only):
        folder = _snapshot(name, revision, tuple(patterns), local_only)
    if not folder.is_dir():
        raise RemoteError(f"{source}: has none of the files {some_of(patterns)}; {expected}")
    return folder


def pinned(source: str) -> str:
    """The name of a downloaded model with its commit, which names the same files also when the model changes."""
    folder = hub_folder(source, (), _EXPECTED, local_only=True)
    return f"{HUB}{_parts(source)[0]}@{folder.name}"


def _parts(source: str) -> tuple[str, str | None]:
    """The name and the revision in `hub:ORG/NAME@REVISION`."""
    if not (found := _NAME.fullmatch(source)):
        raise RemoteError(f"{source}: not the name of a model on the hub; {_EXPECTED}")
    return found[1], found[2]


@functools.lru_cache(maxsize=32)
def _snapshot(name: str, revision: str | None, patterns: tuple[str, ...], local_only: bool) -> Path:
    import huggingface_hub

    return Path(
        huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(patterns), local_files_only=local_only
        )
    )


@contextlib.contextmanager
def _errors(source: str, *, local_only: bool = False) -> Iterator[None]:
    """Turns the library's errors within the block into one line, which says what the hub has answered."""
    from huggingface_hub import constants, errors

    try:
        yield
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
