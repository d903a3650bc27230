"""Records of tensors."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from elmo_tasks.text.tokens import TensorRecord


@dataclasses.dataclass(frozen=True)
class Inner(TensorRecord):
    values: Tensor
    mask: Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Outer(TensorRecord):
    inner: Inner
    labels: Tensor
    texts: list[str]


def test_a_record_moves_with_the_records_in_it() -> None:
    moved = Outer(Inner(torch.ones(2)), torch.ones(3), ["a"]).to("meta")
    assert moved.labels.device.type == moved.inner.values.device.type == "meta"
    assert moved.inner.mask is None
    assert moved.texts == ["a"]
