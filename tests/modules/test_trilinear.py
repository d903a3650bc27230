"""Trilinear scores and what attends by them: brute force, padding, gradients, bounded memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch

from elmo_tasks.modules import attention as attention_module
from elmo_tasks.modules.attention import AttentionFlow, SelfAttention, TrilinearScores
from tests.modules.helpers import mask_of


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(6)


def score(scores: TrilinearScores, one: Sequence[float], other: Sequence[float]) -> float:
    """The paper's w [x; y; x * y], one number at a time."""
    weights = [*scores.first.tolist(), *scores.second.tolist(), *scores.product.tolist()]
    features = [*one, *other, *(x * y for x, y in zip(one, other, strict=True))]
    return sum(weight * feature for weight, feature in zip(weights, features, strict=True))


def softmax(scores: Sequence[float]) -> list[float]:
    total = sum(map(math.exp, scores))
    return [math.exp(each) / total for each in scores]


def mean(weights: Sequence[float], vectors: Sequence[Sequence[float]]) -> list[float]:
    return [sum(w * v for w, v in zip(weights, column, strict=True)) for column in zip(*vectors, strict=True)]


def test_scores() -> None:
    scores = TrilinearScores(3).double()
    first, second = torch.randn(2, 4, 3, dtype=torch.float64), torch.randn(2, 5, 3, dtype=torch.float64)
    found = scores(first, second)
    expected = [
        [[score(scores, x, y) for y in ys] for x in xs] for xs, ys in zip(first.tolist(), second.tolist(), strict=True)
    ]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_weights_start_as_those_of_one_layer_after_glorot() -> None:
    bound = (6 / (3 * 400 + 1)) ** 0.5
    for weight in TrilinearScores(400).parameters():
        assert -bound <= weight.min() < -0.95 * bound
        assert 0.95 * bound < weight.max() <= bound


def test_attention_flow_by_brute_force() -> None:
    flow = AttentionFlow(3).double()
    passages, questions = torch.randn(3, 5, 3, dtype=torch.float64), torch.randn(3, 4, 3, dtype=torch.float64)
    passage_lengths, question_lengths = [5, 2, 1], [1, 4, 3]
    found = flow(passages, questions, mask_of(passage_lengths), mask_of(question_lengths))
    assert found.shape == (3, 5, flow.output_size)
    for row, (length, question_length) in enumerate(zip(passage_lengths, question_lengths, strict=True)):
        passage, question = passages[row, :length].tolist(), questions[row, :question_length].tolist()
        scores = [[score(flow.scores, token, word) for word in question] for token in passage]
        summary = mean(softmax([max(each) for each in scores]), passage)
        for place, token in enumerate(passage):
            attended = mean(softmax(scores[place]), question)
            products = [[x * y for x, y in zip(token, each, strict=True)] for each in (attended, summary)]
            expected = torch.tensor([*token, *attended, *products[0], *products[1]], dtype=torch.float64)
            torch.testing.assert_close(found[row, place], expected)


def test_self_attention_by_brute_force() -> None:
    attention = SelfAttention(3).double()
    passages = torch.randn(3, 5, 3, dtype=torch.float64)
    lengths = [5, 2, 1]
    found = attention(passages, mask_of(lengths))
    assert attention.nothing.item() == -1
    for row, length in enumerate(lengths):
        passage = passages[row, :length].tolist()
        for place, token in enumerate(passage):
            others = [each for other, each in enumerate(passage) if other != place]
            *weights, of_nothing = softmax([*(score(attention.scores, token, other) for other in others), -1.0])
            expected = mean(weights, others) if others else [0.0] * 3
            assert of_nothing > 0
            torch.testing.assert_close(found[row, place], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("at_once", [1, 14, 30, 10_000])
def test_self_attention_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    attention = SelfAttention(4)
    passages, mask = torch.randn(2, 7, 4), mask_of([7, 3])
    whole = attention(passages, mask)
    shapes: list[torch.Size] = []
    attention.scores.register_forward_hook(lambda _, __, scores: shapes.append(scores.shape))
    monkeypatch.setattr(attention_module, "_SCORES_AT_ONCE", at_once)
    torch.testing.assert_close(attention(passages, mask), whole)
    assert sum(shape[1] for shape in shapes) == 7
    assert all(shape.numel() <= max(at_once, 14) for shape in shapes)


def test_padding_changes_nothing() -> None:
    flow, attention = AttentionFlow(4), SelfAttention(4)
    lengths, question_lengths = [3, 6, 1], [2, 1, 5]
    passages, questions = torch.randn(3, 6, 4), torch.randn(3, 5, 4)
    results = []
    for value, more in ((0.0, 0), (1e4, 3)):
        mask, question_mask = mask_of(lengths, 6 + more), mask_of(question_lengths, 5 + more)
        padded = [
            torch.cat([each, torch.zeros(3, more, 4)], dim=1).masked_fill(~real.unsqueeze(2), value).requires_grad_()
            for each, real in ((passages, mask), (questions, question_mask))
        ]
        outputs = flow(*padded, mask, question_mask)[mask], attention(padded[0], mask)[mask]
        loss = sum(output.square().sum() for output in outputs)
        gradients = torch.autograd.grad(loss, padded)
        for gradient, real in zip(gradients, (mask, question_mask), strict=True):
            assert (gradient[~real] == 0).all()
        results.append([*outputs, gradients[0][mask], gradients[1][question_mask]])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_gradients_are_the_derivatives() -> None:
    flow, attention = AttentionFlow(2).double(), SelfAttention(2).double()
    mask, question_mask = mask_of([3, 1]), mask_of([1, 2])
    passages = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    questions = torch.randn(2, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p, q: flow(p, q, mask, question_mask)[mask], (passages, questions))
    assert torch.autograd.gradcheck(lambda p: attention(p, mask)[mask], (passages,))
    attention(passages, mask)[mask].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in attention.parameters())


def test_extreme_scores_stay_finite() -> None:
    attention = SelfAttention(2)
    for scale in (1e4, 1e-4):
        passages = (scale * torch.randn(1, 5, 2)).requires_grad_()
        attended = attention(passages, mask_of([4], 5))
        assert attended.isfinite().all()
        (gradient,) = torch.autograd.grad(attended.sum(), passages)
        assert gradient.isfinite().all()
