"""The device that a model computes on."""

from __future__ import annotations

from typing import Literal

import torch

from elmo_tasks.errors import ConfigError

Device = Literal["auto", "cpu", "cuda"]
"""`auto` uses a GPU if there is one, `cuda` requires one."""


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
