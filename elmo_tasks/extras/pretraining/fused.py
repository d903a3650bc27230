"""Chains of elementwise operations, compiled for CUDA devices into few passes over memory."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import TypeVar, cast

import torch

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])


@functools.cache
def fused(function: _FunctionT) -> _FunctionT:
    """The function, compiled at its first call if Triton is installed, which torch's compiler needs for CUDA devices.

    It is compiled anew for each shape: for calls of many shapes, the plain function is better.
    """
    if importlib.util.find_spec("triton") is None:
        return function
    return cast("_FunctionT", torch.compile(function, dynamic=False))
