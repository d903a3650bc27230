"""Pooling and spans against plain loops; padding, whatever stands in it, changes neither results nor gradients."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elmo_tasks.models.reading import BestSpans, best_spans
from elmo_tasks.modules.pooling import AttentivePooling, max_pool, mean_pool, min_pool
from tests.modules.helpers import LargestTensor

LENGTHS = (4, 1, 3)
POOLS = {"max": max_pool, "min": min_pool, "mean": mean_pool}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)


@pytest.mark.parametrize(("pool", "of_values"), [(max_pool, max), (min_pool, min), (mean_pool, mean)])
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


GARBAGE = (1e30, math.inf, math.nan)


def brute_force(start: Tensor, end: Tensor, mask: Tensor, max_length: int) -> list[tuple[int, int, float]]:
    """(first, last, probability) of every allowed span of one sequence, (T,) each, the best first."""
    real = [token for token, is_real in enumerate(mask.tolist()) if is_real]
    spans = [(first, last) for first in real for last in real if 0 <= last - first < max_length]
    scores = {(first, last): float(start[first] + end[last]) for first, last in spans}
    highest = max(scores.values())
    total = sum(math.exp(score - highest) for score in scores.values())
    ordered = sorted(spans, key=lambda span: (-scores[span], span))
    return [(first, last, math.exp(scores[first, last] - highest) / total) for first, last in ordered]


def rows(found: BestSpans) -> list[list[tuple[int, int, float]]]:
    columns = (found.starts.tolist(), found.ends.tolist(), found.probabilities.tolist())
    return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Small batches; logits are few whole numbers, so that many spans are equal."""
    batch, length = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    logits = st.lists(st.integers(-2, 2), min_size=batch * length, max_size=batch * length)
    mask = torch.tensor(
        [draw(st.lists(st.booleans(), min_size=length, max_size=length).filter(any)) for _ in range(batch)]
    )
    garbage = draw(st.sampled_from(GARBAGE))
    start, end = (torch.tensor(draw(logits)).reshape(batch, length).double() for _ in range(2))
    return {
        "start_logits": start.masked_fill(~mask, garbage),
        "end_logits": end.masked_fill(~mask, garbage),
        "mask": mask,
        "max_length": draw(st.integers(1, 9)),
        "num_spans": draw(st.integers(1, 6)),
    }


@settings(deadline=None)
@given(case=cases())
def test_brute_force_of_any_batch_length_limit_and_padding(case: dict[str, Any]) -> None:
    found = rows(best_spans(**case))
    for row, start, end, mask in zip(found, case["start_logits"], case["end_logits"], case["mask"], strict=True):
        expected = brute_force(start, end, mask, case["max_length"])[: case["num_spans"]]
        missing = [(-1, -1, 0.0)] * (case["num_spans"] - len(expected))
        assert [span[:2] for span in row] == [span[:2] for span in expected + missing]
        assert [span[2] for span in row] == pytest.approx([span[2] for span in expected + missing])


def test_half_precision_is_computed_in_single() -> None:
    start, end = torch.tensor([[8.0, 9.0]]), torch.tensor([[0.0, 0.001]])
    mask = torch.ones(1, 2, dtype=torch.bool)
    found = best_spans(start.bfloat16(), end.bfloat16(), mask, max_length=2, num_spans=3)
    expected = best_spans(start.bfloat16().float(), end.bfloat16().float(), mask, max_length=2, num_spans=3)
    assert found.probabilities.dtype == torch.float32
    assert rows(found) == rows(expected)


def test_the_logits_are_left_as_they_are() -> None:
    logits = torch.randn(2, 1, 4, requires_grad=True)
    before = logits.detach().clone()
    found = best_spans(logits[0], logits[1], torch.tensor([[True, True, True, False]]), max_length=1, num_spans=3)
    assert torch.equal(logits, before)
    assert not found.probabilities.requires_grad


def test_memory_grows_only_with_the_band() -> None:
    tokens = 20_000
    start, end = torch.zeros(1, tokens), torch.zeros(1, tokens)
    start[0, 19_000], end[0, 19_016], end[0, 19_017] = 5, 5, 50  # the last one is too far away for this start
    with LargestTensor() as largest:
        found = best_spans(start, end, torch.ones(1, tokens, dtype=torch.bool), max_length=17, num_spans=18)
    assert largest.size == tokens * 17
    assert (19_000, 19_016) not in zip(found.starts[0, :17].tolist(), found.ends[0, :17].tolist(), strict=True)
    assert found.starts[0].tolist() == [*range(19_001, 19_018), 19_000]
    assert found.ends[0].tolist() == [19_017] * 17 + [19_016]
