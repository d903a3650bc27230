"""Masked softmax and soft alignment: brute force, padding, gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from elmo_tasks.modules import attention
from elmo_tasks.modules.attention import align, align_with_itself, masked_softmax
from tests.modules.helpers import mask_of


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


def brute_force_weights(queries: Tensor, keys: Tensor) -> Tensor:
    """The weights of the queries (T1, D) over the keys (T2, D), one number at a time."""
    rows = []
    for query in queries.tolist():
        products = [sum(one * other for one, other in zip(query, key, strict=True)) for key in keys.tolist()]
        total = sum(math.exp(product) for product in products)
        rows.append([math.exp(product) / total for product in products])
    return torch.tensor(rows, dtype=queries.dtype)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_masked_softmax_is_the_softmax_of_what_is_real(dim: int) -> None:
    scores = torch.randn(4, 5, 6, dtype=torch.float64)
    mask = torch.rand(4, 5, 6) < 0.6
    mask.select(dim, 0).fill_(True)
    mask[0, 0, :] = mask[0, :, 0] = mask[:, 0, 0] = False  # nothing is real along one line of each axis
    found = masked_softmax(scores, mask, dim)
    assert (found[~mask] == 0).all()
    lines = [each.movedim(dim, -1).flatten(0, 1) for each in (scores, mask, found)]
    for values, real, probabilities in zip(*lines, strict=True):
        torch.testing.assert_close(probabilities[real], values[real].softmax(0))


def test_masked_softmax_takes_a_mask_that_broadcasts() -> None:
    scores = torch.randn(2, 3, 4)
    mask = mask_of([4, 2])
    wide = mask.unsqueeze(1).expand(2, 3, 4)
    assert torch.equal(masked_softmax(scores, mask.unsqueeze(1)), masked_softmax(scores, wide))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30])
def test_what_is_masked_neither_counts_nor_learns(value: float) -> None:
    mask = torch.tensor([[True, False, True], [False, False, False]])
    scores = torch.randn(2, 3).masked_fill(~mask, value).requires_grad_()
    probabilities = masked_softmax(scores, mask)
    torch.testing.assert_close(probabilities[0, [0, 2]], scores[0, [0, 2]].softmax(0))
    assert (probabilities[~mask] == 0).all()
    (gradient,) = torch.autograd.grad((probabilities * torch.tensor([1.0, 2, 3])).sum(), scores)
    assert (gradient[~mask] == 0).all()
    assert (gradient[mask] != 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_masked_softmax_in_half_precision(dtype: torch.dtype) -> None:
    scores = torch.tensor([[-60000.0, -59000.0, 60000.0]], dtype=dtype)
    probabilities = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert probabilities.dtype == dtype
    assert probabilities.tolist() == [[0, 1, 0]]


def test_masked_softmax_gradient_is_the_derivative() -> None:
    mask = mask_of([3, 1, 0], 4)
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda values: masked_softmax(values, mask), (scores,))


def test_alignment_by_brute_force() -> None:
    first_lengths, second_lengths = [3, 1, 5], [2, 4, 1]
    first, second = torch.randn(3, 5, 2, dtype=torch.float64), torch.randn(3, 4, 2, dtype=torch.float64)
    found = align(first, second, mask_of(first_lengths), mask_of(second_lengths))
    assert found.first_weights.shape == (3, 5, 4)
    assert found.second_weights.shape == (3, 4, 5)
    for row, (first_length, second_length) in enumerate(zip(first_lengths, second_lengths, strict=True)):
        premise, hypothesis = first[row, :first_length], second[row, :second_length]
        expected = torch.zeros(5, 4, dtype=torch.float64)
        expected[:first_length, :second_length] = brute_force_weights(premise, hypothesis)
        torch.testing.assert_close(found.first_weights[row], expected)
        torch.testing.assert_close(found.first[row], expected @ second[row])
        expected = torch.zeros(4, 5, dtype=torch.float64)
        expected[:second_length, :first_length] = brute_force_weights(hypothesis, premise)
        torch.testing.assert_close(found.second_weights[row], expected)
        torch.testing.assert_close(found.second[row], expected @ first[row])


def test_padding_changes_neither_alignment_nor_gradients() -> None:
    first_mask, second_mask = mask_of([3, 1, 4]), mask_of([2, 5, 1])
    first, second = torch.randn(3, 4, 6), torch.randn(3, 5, 6)
    weights = torch.randn(3, 4, 6), torch.randn(3, 5, 6)
    results = []
    for value, more in ((0.0, 0), (1e4, 0), (-1e4, 3)):
        padded = [
            torch.cat([each.masked_fill(~mask.unsqueeze(2), value), torch.full((3, more, 6), value)], dim=1)
            for each, mask in ((first, first_mask), (second, second_mask))
        ]
        masks = [torch.cat([mask, torch.zeros(3, more, dtype=torch.bool)], dim=1) for mask in (first_mask, second_mask)]
        leaves = [each.requires_grad_() for each in padded]
        found = align(*leaves, *masks)
        assert (found.first[~masks[0]] == 0).all()
        assert (found.second[~masks[1]] == 0).all()
        loss = (found.first[:, :4] * weights[0]).sum() + (found.second[:, :5] * weights[1]).sum()
        gradients = torch.autograd.grad(loss, leaves)
        for gradient, mask in zip(gradients, masks, strict=True):
            assert (gradient[~mask] == 0).all()
        weights_found = (found.first_weights[:, :4, :5], found.second_weights[:, :5, :4])
        results.append(
            [*weights_found, found.first[:, :4], found.second[:, :5], gradients[0][:, :4], gradients[1][:, :5]]
        )
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-5)


def test_gradient_of_the_alignment_is_the_derivative() -> None:
    masks = mask_of([2, 3]), mask_of([4, 1])
    first = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    second = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)

    def aligned(one: Tensor, other: Tensor) -> tuple[Tensor, ...]:
        found = align(one, other, *masks)
        return found.first, found.second, found.first_weights, found.second_weights

    assert torch.autograd.gradcheck(aligned, (first, second))


def test_a_text_aligned_with_itself_is_the_same_both_ways() -> None:
    text, mask = torch.randn(2, 5, 3), mask_of([5, 2])
    found = align(text, text, mask, mask)
    torch.testing.assert_close(found.first, found.second)
    torch.testing.assert_close(found.first_weights, found.second_weights)


@pytest.mark.parametrize("at_once", [1, 14, 30, 10_000])
def test_a_text_is_aligned_with_itself_in_parts(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    text, mask = torch.randn(2, 7, 4, requires_grad=True), mask_of([7, 3])
    shapes: list[torch.Size] = []

    def recorded(scores: Tensor, mask: Tensor) -> Tensor:
        shapes.append(scores.shape)
        return masked_softmax(scores, mask)

    expected = align(text, text, mask, mask).first
    monkeypatch.setattr(attention, "masked_softmax", recorded)
    monkeypatch.setattr(attention, "_SCORES_AT_ONCE", at_once)
    found = align_with_itself(text, mask)
    torch.testing.assert_close(found, expected)
    assert sum(shape[1] for shape in shapes) == 7
    assert all(shape.numel() <= max(at_once, 14) for shape in shapes)
    weights = torch.randn(2, 7, 4)
    gradients = [torch.autograd.grad((each * weights).sum(), text)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_an_empty_sequence_is_attended_to_by_nothing() -> None:
    found = align(torch.randn(1, 2, 3), torch.randn(1, 4, 3), mask_of([2]), mask_of([0], 4))
    for each in (found.first, found.second, found.first_weights, found.second_weights):
        assert (each == 0).all()
