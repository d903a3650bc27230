"""Pooling against plain loops; padding, whatever stands in it, changes neither results nor gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor

from elmo_tasks.modules.pooling import (
    AttentivePooling,
    Pooling,
    PoolingName,
    last_pool,
    max_pool,
    mean_pool,
    min_pool,
    sum_pool,
)

LENGTHS = (4, 1, 3)
POOLS = {"max": max_pool, "min": min_pool, "mean": mean_pool}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)


@pytest.mark.parametrize(("pool", "of_values"), [(max_pool, max), (min_pool, min), (mean_pool, mean), (sum_pool, sum)])
def test_each_feature_of_each_text(
    pool: Callable[[Tensor, Tensor], Tensor], of_values: Callable[[list[float]], float], mask: Tensor
) -> None:
    vectors = torch.randn(3, 4, 5) - 3 * (pool is max_pool)  # a maximum below zero, and so not of the padding
    found = pool(vectors, mask)
    for text, length in enumerate(LENGTHS):
        expected = [of_values(vectors[text, :length, feature].tolist()) for feature in range(5)]
        assert found[text].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS.keys())
@pytest.mark.parametrize("value", [math.nan, math.inf, -1e30])
def test_padding_does_not_matter(pool: Callable[[Tensor, Tensor], Tensor], value: float, mask: Tensor) -> None:
    clean = torch.randn(3, 4, 5)
    vectors = clean.masked_fill(~mask.unsqueeze(2), value).requires_grad_()
    assert torch.equal(pool(vectors, mask), pool(clean, mask))
    (gradient,) = torch.autograd.grad(pool(vectors, mask).sum(), vectors)
    assert (gradient[~mask] == 0).all()
    torch.testing.assert_close(gradient.sum(1), torch.ones(3, 5))


@torch.no_grad()
def test_attentive_pooling_is_a_weighted_sum(mask: Tensor) -> None:
    module, vectors = AttentivePooling(5), torch.randn(3, 4, 5)
    pooled, weights = module(vectors, mask)
    assert torch.equal(weights == 0, ~mask)
    for text, length in enumerate(LENGTHS):
        powers = [math.exp(float(vector @ module.score.weight[0])) for vector in vectors[text, :length]]
        expected = [power / sum(powers) for power in powers]
        assert weights[text, :length].tolist() == pytest.approx(expected)
        total = sum(weight * vector for weight, vector in zip(expected, vectors[text], strict=False))
        assert pooled[text].tolist() == pytest.approx(total.tolist(), abs=1e-6)
    padded, _ = module(vectors.masked_fill(~mask.unsqueeze(2), 1e4), mask)
    torch.testing.assert_close(padded, pooled)


def test_attentive_pooling_starts_after_glorot_and_has_no_bias() -> None:
    state, bound = AttentivePooling(400).state_dict(), (6 / 401) ** 0.5
    assert list(state) == ["score.weight"]
    assert 0.9 * bound < state["score.weight"].abs().max() <= bound


def test_the_last_token_and_the_first(mask: Tensor) -> None:
    vectors = torch.randn(3, 4, 5)
    found = last_pool(vectors, mask)
    for text, length in enumerate(LENGTHS):
        assert torch.equal(found[text], torch.cat([vectors[text, length - 1], vectors[text, 0]]))


@pytest.mark.parametrize("name", get_args(PoolingName))
def test_a_pooling_by_its_name(name: PoolingName, mask: Tensor) -> None:
    vectors = torch.randn(3, 4, 5)
    pooling = Pooling(name, 5)
    pooled, weights = pooling(vectors, mask)
    assert pooled.shape == (3, pooling.output_size)
    if pooling.attention is None:
        assert weights is None
        assert torch.equal(pooled, {**POOLS, "last": last_pool, "sum": sum_pool}[name](vectors, mask))
    else:
        assert torch.equal(pooled, pooling.attention(vectors, mask)[0])
