"""Masks, gradients and sizes for tests of layers."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def mask_of(lengths: Sequence[int], num_tokens: int | None = None) -> Tensor:
    """(B, T) bool for sentences of these lengths."""
    return torch.arange(num_tokens or max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def gradients(outputs: Tensor, weights: Tensor, variables: Iterable[Tensor]) -> list[Tensor]:
    """Those of the outputs' weighted sum."""
    return list(torch.autograd.grad((outputs * weights).sum(), list(variables)))


class LargestTensor(TorchDispatchMode):
    """Remembers the largest number of values that the memory of any operation's result held."""

    size = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = function(*args, **(kwargs or {}))
        for result in results if isinstance(results, (tuple, list)) else [results]:
            if isinstance(result, Tensor):
                self.size = max(self.size, result.untyped_storage().nbytes() // result.element_size())
        return results
