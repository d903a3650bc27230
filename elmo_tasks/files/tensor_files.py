"""Files of tensors: safetensors, and the states from which training resumes."""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from elmo_tasks.errors import BEGIN_AGAIN, ElmoTasksError, RunError, WriteError, one_line
from elmo_tasks.files.atomic import atomic_folder, atomic_output
from elmo_tasks.files.text import ZIP_ERRORS


def write_tensors(path: Path, tensors: Mapping[str, Tensor], **metadata: str) -> None:
    """Writes tensors as safetensors, atomically; raises `WriteError` if they cannot be written."""
    contents = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    with atomic_folder(path.parent, merge=True) as folder:  # safetensors makes a temporary file of its own there
        file = folder / path.name
        try:
            safetensors.torch.save_file(contents, file, metadata or None)
        except SafetensorError as error:
            reason = str(error).replace(str(file), str(path))
            raise WriteError(path, reason, sum(tensor.nbytes for tensor in contents.values())) from None
        file.chmod(folder.stat().st_mode & 0o666)  # it is only its owner's to read
        with file.open("rb+") as stream:  # Windows only syncs what may be written
            os.fsync(stream.fileno())


def read_tensors(path: Path, error: type[ElmoTasksError] = RunError) -> dict[str, Tensor]:
    """Reads a safetensors file; raises `RunError`, or `error`, if it is missing or damaged, or has NaN."""
    with _reading_tensors(path, error):
        tensors = safetensors.torch.load_file(path)
    if bad := [name for name, tensor in tensors.items() if tensor.isnan().any()]:
        raise error(f"{path}: damaged ({bad[0]} has values that are not numbers)")
    return tensors


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors of a safetensors file, from its header; errors as for `read_tensors`."""
    with _reading_tensors(path, RunError), safetensors.safe_open(path, "pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a dict


def tensor_metadata(path: Path) -> dict[str, str]:
    """What `write_tensors` has written with the tensors; errors as for `read_tensors`."""
    with _reading_tensors(path, RunError), safetensors.safe_open(path, "pt") as file:
        return file.metadata() or {}


@contextlib.contextmanager
def _reading_tensors(path: Path, error: type[ElmoTasksError]) -> Iterator[None]:
    if path.exists() and not path.is_file():
        raise error(f"{path}: not a regular file; expected tensors as safetensors")
    try:
        yield
    except FileNotFoundError:
        raise error(f"{path}: no such file; the run has not finished its first epoch") from None
    except (SafetensorError, LookupError, ValueError) as problem:  # the last two for types that torch does not have
        raise error(f"{path}: damaged, or not a safetensors file ({problem})") from None


# What reading a damaged training state, or putting it to use, can raise.
DAMAGED_STATE = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, RuntimeError, TypeError, ValueError,
    pickle.UnpicklingError, struct.error,
)  # fmt: skip


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a training state (tensors, numbers, strings, containers) atomically; errors as for `write_tensors`."""
    with atomic_output(path) as stream:
        torch.save(dict(state), stream)


def read_state(path: Path) -> dict[str, Any]:
    """Reads a training state; raises `RunError` if it is damaged."""
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: not a regular file; expected a training state; {BEGIN_AGAIN}")
    try:
        with zipfile.ZipFile(path) as parts:  # torch does not look at the checksums
            if damaged := parts.testzip():
                raise ValueError(f"the checksum of {damaged} is wrong")
        state = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(state, dict):
            raise TypeError(f"a {type(state).__name__}")
    except (*DAMAGED_STATE, *ZIP_ERRORS) as error:  # offsets in a damaged file can be before its beginning
        raise RunError(f"{path}: damaged, or not a training state ({one_line(error)}); {BEGIN_AGAIN}") from None
    return state
