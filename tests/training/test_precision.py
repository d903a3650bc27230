from __future__ import annotations

import pytest
import torch

from elmo_tasks.training import precision
from elmo_tasks.training.precision import product_type

CPU = torch.device("cpu")


def seconds(monkeypatch: pytest.MonkeyPatch, *, float32: list[float], bfloat16: list[float]) -> None:
    """Lets the products take these times, in turn."""
    times = {torch.float32: iter(float32), torch.bfloat16: iter(bfloat16)}
    monkeypatch.setattr(precision, "_seconds", lambda factor: next(times[factor.dtype]))


@pytest.mark.parametrize(("taken", "expected"), [(0.5, torch.bfloat16), (0.9, torch.float32), (10.0, torch.float32)])
def test_auto_is_bfloat16_where_it_is_clearly_faster(
    monkeypatch: pytest.MonkeyPatch, taken: float, expected: torch.dtype
) -> None:
    seconds(monkeypatch, float32=[1.0] * 5, bfloat16=[taken] * 5)
    assert product_type("auto", CPU) == expected


def test_one_slow_product_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, float32=[1.0, 9.0, 9.0, 9.0, 9.0], bfloat16=[9.0, 9.0, 0.9, 9.0, 9.0])
    assert product_type("auto", CPU) == torch.float32


def test_a_type_that_is_named_is_taken_unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, float32=[], bfloat16=[])
    assert product_type("float32", CPU) == torch.float32
    assert product_type("bfloat16", CPU) == torch.bfloat16


def test_the_time_of_a_product_is_that_of_its_type() -> None:
    factor = torch.ones(8, 8, dtype=torch.bfloat16)
    assert precision._seconds(factor) > 0
    assert product_type("auto", CPU) in (torch.float32, torch.bfloat16)
