"""Masks and gradients for tests of layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


def mask_of(lengths: Sequence[int], num_tokens: int | None = None) -> Tensor:
    """(B, T) bool for sentences of these lengths."""
    return torch.arange(num_tokens or max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def gradients(outputs: Tensor, weights: Tensor, variables: Iterable[Tensor]) -> list[Tensor]:
    """Those of the outputs' weighted sum."""
    return list(torch.autograd.grad((outputs * weights).sum(), list(variables)))
