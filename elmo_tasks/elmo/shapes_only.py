"""Modules whose tensors have shapes and types, but neither values nor memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

_DRAWING: set[Callable[..., Any]] = {torch.Tensor.normal_, nn.init.normal_}


class _NothingDrawn(TorchFunctionMode):
    """Leaves tensors as they are that would get random values, for which torch imports its compiler in a second."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        keywords: Mapping[str, Any] | None = None,
    ) -> Any:
        keywords = keywords or {}
        if function in _DRAWING:
            return arguments[0] if arguments else keywords["tensor"]
        return function(*arguments, **keywords)


@contextlib.contextmanager
def shapes_only() -> Iterator[None]:
    """Within the block, new tensors are on the device "meta"."""
    with torch.device("meta"), _NothingDrawn():
        yield
