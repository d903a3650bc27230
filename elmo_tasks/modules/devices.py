"""The devices that a model computes on, their memory, and modules that are on none: only their shapes are known."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from elmo_tasks.errors import ConfigError

Device = Literal["auto", "cpu", "cuda"]
"""`auto` uses a GPU if there is one, `cuda` requires one."""

_DRAWING: set[Callable[..., Any]] = {torch.Tensor.normal_, nn.init.normal_}


def torch_device(device: Device, setting: str = "device") -> torch.device:
    """The device of a single process.

    Arguments:
        setting: the name of the setting in messages.

    Raises:
        ConfigError: there is no such device.
    """
    has_gpu = torch.cuda.is_available()
    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"{setting}: got {device!r}; expected 'auto', 'cpu' or 'cuda'")
    if device == "cuda" and not has_gpu:
        raise ConfigError(f"{setting}: 'cuda' needs a GPU that torch can use, and there is none; use 'auto'")
    return torch.device("cuda" if device != "cpu" and has_gpu else "cpu")


def release_memory() -> None:
    """Gives the free parts of the heaps back at once."""
    with contextlib.suppress(OSError, TypeError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def shapes_only() -> Iterator[None]:
    """Within the block, new tensors have shapes and types, but neither values nor memory: their device is "meta"."""
    with torch.device("meta"), _NothingDrawn():
        yield


class _NothingDrawn(TorchFunctionMode):
    """Leaves tensors as they are that would get random values, for which torch imports its compiler in a second."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        if function in _DRAWING:
            return arguments[0] if arguments else keywords["tensor"]
        return function(*arguments, **keywords)
