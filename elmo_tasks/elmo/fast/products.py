"""Products of rows with fixed matrices, in the fastest way that this processor and this torch have.

`PlainProduct` and `PlainInt8Product` are the references: they use torch's public functions, and always work. The
faster ways use operators of torch that are not public. `build_product` is the only door to them: it tries a way once on
a small product before it is used, and skips it if it is missing or wrong.

# M rows, K inputs of a row, N outputs of a row
"""

from __future__ import annotations

import functools
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.errors import ConfigError

logger = logging.getLogger(__name__)

Precision = Literal["float32", "bfloat16", "int8"]
"""How products are computed: exactly; with factors rounded to 8 significant bits; with factors rounded to 255 steps."""


class Product(nn.Module, ABC):
    """x W^T + b for one fixed matrix and many x.

    Inputs and results are float32; values in between may not be. The methods must be valid TorchScript.
    """

    @abstractmethod
    def start(self, inputs: Tensor) -> Tensor:
        """x W^T + b, (M, K) -> (M, N), in the type that is best for `add`."""

    @abstractmethod
    def add(self, start: Tensor, inputs: Tensor) -> Tensor:
        """start + x W^T, without b: (M, N), (M, K) -> (M, N) float32, a new tensor."""

    def forward(self, inputs: Tensor) -> Tensor:
        """x W^T + b, (M, K) -> (M, N) float32, a new tensor."""
        return self.start(inputs).float()


class PlainProduct(Product):
    """The product as torch computes it, on any device.

    Arguments:
        weight: W, (N, K) float32.
        bias: b, (N,) float32.
        dtype: what the factors are rounded to.
    """

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> None:
        super().__init__()
        self._weight, self._bias, self._dtype = weight.to(dtype), bias.to(dtype), dtype

    def start(self, inputs: Tensor) -> Tensor:
        return functional.linear(inputs.to(self._dtype), self._weight, self._bias)

    def add(self, start: Tensor, inputs: Tensor) -> Tensor:
        return torch.addmm(start, inputs.to(self._dtype), self._weight.t()).float()


class OneDnnProduct(Product):
    """A product through one of oneDNN's operators, with a number of rows for which it is fast."""

    def start(self, inputs: Tensor) -> Tensor:
        rows = _convenient_rows(len(inputs))
        if rows == len(inputs):
            return self._start(inputs)
        return self._start(_with_rows(inputs, rows))[: len(inputs)]

    def add(self, start: Tensor, inputs: Tensor) -> Tensor:
        rows = _convenient_rows(len(inputs))
        if rows == len(inputs):
            return self._add(start, inputs)
        return self._add(_with_rows(start, rows), _with_rows(inputs, rows))[: len(inputs)]

    @abstractmethod
    def _start(self, inputs: Tensor) -> Tensor: ...

    @abstractmethod
    def _add(self, start: Tensor, inputs: Tensor) -> Tensor: ...


class PackedProduct(OneDnnProduct):
    """The product of `PlainProduct`, with a matrix packed for the processor's caches, by oneDNN.

    `torch.compile` uses the same operators.
    """

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> None:
        super().__init__()
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype).contiguous(), None)
        self._bias, self._dtype = bias.to(dtype), dtype

    def _start(self, inputs: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(inputs.to(self._dtype), self._weight, self._bias, "none", [], "")

    def _add(self, start: Tensor, inputs: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(inputs.to(self._dtype), start, self._weight, None, "add").float()


class Int8Product(OneDnnProduct):
    """A product of integers: each row of x and of W is a scale times integers from -127 to 127; see `PlainProduct`."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        integers, scales = _quantize(weight)
        self._scales = scales.flatten()
        self._zero_points = torch.zeros_like(self._scales, dtype=torch.int32)
        self._weight = torch.ops.onednn.qlinear_prepack(integers.to(torch.int8), None)
        self._bias = bias

    def _start(self, inputs: Tensor) -> Tensor:
        return self._add(self._bias, inputs)

    def _add(self, start: Tensor, inputs: Tensor) -> Tensor:
        integers, scales = _quantize(inputs)
        shifted = integers.add_(128.0).to(torch.uint8)  # the kernel needs unsigned factors
        products = torch.ops.onednn.qlinear_pointwise(
            shifted, 1.0, 128, self._weight, self._scales, self._zero_points, None, 1.0, 0, torch.float32,
            "none", [], "",
        )  # fmt: skip
        return torch.addcmul(start, products, scales)


class HalfProduct(Product):
    """The product of `PlainProduct` in float32, with a matrix that half precision holds exactly, through FBGEMM.

    A few rows take as long as the matrix takes to come from memory, and this one is half as large. Factors and sums
    are float32.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        if not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
            raise RuntimeError("FBGEMM needs AVX2")  # it may not say so itself
        self._weight = torch.ops.quantized.linear_prepack_fp16(weight.contiguous(), None)
        self._bias = bias if bias.any() else None

    def start(self, inputs: Tensor) -> Tensor:
        product: Tensor = torch.ops.quantized.linear_dynamic_fp16(inputs, self._weight)
        return product if self._bias is None else product.add_(self._bias)

    def add(self, start: Tensor, inputs: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic_fp16(inputs, self._weight).add_(start)


class PlainInt8Product(Product):
    """The integers of `Int8Product`, multiplied as float32: slow, but on any processor."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        integers, scales = _quantize(weight)
        self._weight, self._scales = integers.to(torch.int8), scales.flatten()
        self._bias = bias

    def start(self, inputs: Tensor) -> Tensor:
        return self.add(self._bias, inputs)

    def add(self, start: Tensor, inputs: Tensor) -> Tensor:
        integers, scales = _quantize(inputs)
        products = functional.linear(integers, self._weight.float()).mul_(self._scales)
        return torch.addcmul(start, products, scales)


Way = Callable[[Tensor, Tensor], Product]

# The faster ways, which are tried on a CPU in this order, and the one that always works, on any device.
_FASTER: dict[Precision, tuple[Way, ...]] = {
    "float32": (HalfProduct, functools.partial(PackedProduct, dtype=torch.float32)),
    "bfloat16": (functools.partial(PackedProduct, dtype=torch.bfloat16),),
    "int8": (Int8Product,),
}
_PLAIN: dict[Precision, Way] = {
    "float32": functools.partial(PlainProduct, dtype=torch.float32),
    "bfloat16": functools.partial(PlainProduct, dtype=torch.bfloat16),
    "int8": PlainInt8Product,
}


def build_product(weight: Tensor, bias: Tensor | None, precision: Precision, *, few_rows: bool = False) -> Product:
    """The fastest product that works here.

    Arguments:
        weight: W, (N, K) float32.
        bias: b, (N,) float32, or None for none.
        precision: see `Precision`. int8 is only for the CPU.
        few_rows: whether it must be fast for a few rows; it may take ten times as long to build.

    Raises:
        ConfigError: the precision is int8, and the matrix is on another device than the CPU.
    """
    on_cpu = weight.device.type == "cpu"
    if precision == "int8" and not on_cpu:
        advice = "expected float32 or bfloat16 (elmo.precision)"
        raise ConfigError(f"precision int8 is only for the CPU, and the biLM is on {weight.device}; {advice}")
    # oneDNN generates code for each shape of an operation, up to a megabyte, and keeps that of the last 1024: memory
    # would grow for hours in a process that predicts. It reads this variable before its first operation.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")
    ways = _FASTER[precision] if on_cpu else ()
    if not (few_rows and all(torch.equal(part, part.half().float()) for part in weight.split(512))):
        ways = tuple(each for each in ways if each is not HalfProduct)
    way = next((each for each in ways if _works(each, precision)), _PLAIN[precision])
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    return way(weight.detach(), bias.detach())


@functools.cache
def _works(way: Way, precision: Precision) -> bool:
    """Whether a way works and is right: here an operator may be missing, have another name or overflow."""
    generator = torch.Generator().manual_seed(0)
    weight, inputs = (torch.randn(rows, 96, generator=generator).half().float() for rows in (64, 5))
    weight[0], inputs[0] = 1.0, 1.0  # gives the largest possible sums of integers
    bias = torch.randn(64, generator=generator)
    plain = _PLAIN[precision](weight, bias)
    try:
        product = way(weight, bias)
        found = product.add(product.start(inputs), inputs)
    except (RuntimeError, AttributeError, TypeError) as error:
        logger.debug("%s products: %s is not available here (%s)", precision, way, error)
        return False
    expected = plain.add(plain.start(inputs), inputs)
    tolerance = 0.02 if precision == "bfloat16" else 1e-5
    right = torch.allclose(found, expected, rtol=tolerance, atol=10 * tolerance)
    if not right:
        logger.warning("%s: %s gives wrong results on this processor; slower products are used", precision, way)
    return right


def _convenient_rows(rows: int) -> int:
    """The number of rows to which a product is filled up: above 128, one of 16 numbers for each power of two.

    oneDNN generates and keeps code for each number of rows: up to half a megabyte, in up to half a millisecond.
    """
    if rows <= 128:
        return rows
    step = 8
    while 32 * step <= rows:
        step *= 2
    return -(-rows // step) * step


def _with_rows(rows: Tensor, count: int) -> Tensor:
    """(M, K) -> (count, K), filled up with zeros."""
    return functional.pad(rows, [0, 0, 0, count - len(rows)])


def _quantize(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as integers from -127 to 127, still float32, and the scale of each: (M, K) -> (M, K), (M, 1)"""
    scales = rows.abs().amax(dim=1, keepdim=True).div_(127.0)
    scales.clamp_min_(1e-30)  # of a row of zeros
    return (rows / scales).round_(), scales
