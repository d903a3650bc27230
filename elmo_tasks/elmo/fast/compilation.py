"""Modules without Python's interpreter, which two threads cannot use at once."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

logger = logging.getLogger(__name__)


def compiled(module: nn.Module) -> Callable[..., Any]:
    """A module as TorchScript where torch still has it, and as it is elsewhere: the same numbers, only later.

    TorchScript is deprecated. What torch has in its place wants a C++ compiler, or compiles anew for other shapes.
    """
    try:
        with warnings.catch_warnings():  # process-wide, but only for as long as compiling takes
            warnings.simplefilter("ignore")
            scripted: Callable[..., Any] = torch.jit.script(module)
    except (RuntimeError, OSError, AttributeError, TypeError) as error:
        logger.info("recurrent steps run in Python, since torch does not compile them here (%s)", error)
        return module
    return scripted
