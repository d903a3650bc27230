"""The type of the factors of matrix products in training."""

from __future__ import annotations

import math
import time
from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]

_SIZE = 512  # of the products that are tried, about those of a training step
_TRIES = 5
_CLEARLY_FASTER = 0.75  # of the time: a smaller gain is lost to the conversions


def product_type(precision: Precision, device: torch.device) -> torch.dtype:
    """The type of the factors; "auto" is bfloat16 where it is clearly faster than float32.

    Processors without instructions for bfloat16 compute it many times slower than float32, so "auto" measures it.
    """
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    factors = [torch.ones(_SIZE, _SIZE, dtype=dtype, device=device) for dtype in (torch.float32, torch.bfloat16)]
    best = [math.inf, math.inf]
    for _ in range(_TRIES):
        best = [min(earlier, _seconds(each)) for earlier, each in zip(best, factors, strict=True)]
    return torch.bfloat16 if best[1] < _CLEARLY_FASTER * best[0] else torch.float32


def _seconds(factor: torch.Tensor) -> float:
    started = time.perf_counter()
    (factor @ factor)[0, 0].item()  # waits for the device
    return time.perf_counter() - started
