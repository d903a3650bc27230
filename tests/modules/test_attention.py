"""Masked softmax, soft alignment and trilinear attention: brute force, padding, gradients, bounded memory."""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from elmo_tasks.modules import attention as attention_module
from elmo_tasks.modules.attention import (
    AttentionFlow,
    SelfAttention,
    TrilinearScores,
    align,
    align_with_itself,
    masked_softmax,
)
from tests.modules.helpers import mask_of

# Vectors (T, 1) for the padding: scores, which are linear in them, are large for every other one.
GARBAGE = 1e4 * (-1.0) ** torch.arange(5, dtype=torch.float64).unsqueeze(1)


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


def test_alignment_by_brute_force() -> None:
    first_lengths, second_lengths = [3, 1, 5], [2, 4, 1]
    first, second = torch.randn(3, 5, 2, dtype=torch.float64), torch.randn(3, 4, 2, dtype=torch.float64)
    masks = mask_of(first_lengths), mask_of(second_lengths)
    first, second = (
        each.masked_fill(~mask.unsqueeze(2), 1e4) for each, mask in zip((first, second), masks, strict=True)
    )
    found = align(first, second, *masks)
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


# Trilinear scores, and what attends by them


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


def test_trilinear_scores() -> None:
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
    mask, question_mask = mask_of(passage_lengths), mask_of(question_lengths)
    passages = passages.where(mask.unsqueeze(2), GARBAGE)
    questions = questions.where(question_mask.unsqueeze(2), GARBAGE[:4])
    found = flow(passages, questions, mask, question_mask)
    assert found.shape == (3, 5, flow.output_size)
    for row, (length, question_length) in enumerate(zip(passage_lengths, question_lengths, strict=True)):
        passage, question = passages[row, :length].tolist(), questions[row, :question_length].tolist()
        scores = [[score(flow.scores, token, word) for word in question] for token in passage]
        summary = mean(softmax([max(each) for each in scores]), passage)
        for number, token in enumerate(passage):
            attended = mean(softmax(scores[number]), question)
            products = [[x * y for x, y in zip(token, each, strict=True)] for each in (attended, summary)]
            expected = torch.tensor([*token, *attended, *products[0], *products[1]], dtype=torch.float64)
            torch.testing.assert_close(found[row, number], expected)


def test_self_attention_by_brute_force() -> None:
    attention = SelfAttention(3).double()
    passages = torch.randn(3, 5, 3, dtype=torch.float64)
    lengths = [5, 2, 1]
    found = attention(passages.where(mask_of(lengths).unsqueeze(2), GARBAGE), mask_of(lengths))
    assert attention.nothing.item() == -1
    for row, length in enumerate(lengths):
        passage = passages[row, :length].tolist()
        for number, token in enumerate(passage):
            others = [each for other, each in enumerate(passage) if other != number]
            *weights, of_nothing = softmax([*(score(attention.scores, token, other) for other in others), -1.0])
            expected = mean(weights, others) if others else [0.0] * 3
            assert of_nothing > 0
            torch.testing.assert_close(found[row, number], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("at_once", [1, 14, 30, 10_000])
def test_a_text_attends_to_itself_in_parts(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """It takes 14 scores for each token."""
    text, mask, attention = torch.randn(2, 7, 4, requires_grad=True), mask_of([7, 3]), SelfAttention(4)
    shapes: list[torch.Size] = []
    expected = [align(text, text, mask, mask).first, attention(text, mask)]
    attention.scores.register_forward_hook(lambda _, __, scores: shapes.append(scores.shape))
    monkeypatch.setattr(attention_module, "_SCORES_AT_ONCE", at_once)
    found = [align_with_itself(text, mask), attention(text, mask)]
    torch.testing.assert_close(found, expected)
    assert [shape[1] for shape in shapes] == {1: [1] * 7, 14: [1] * 7, 30: [2, 2, 2, 1]}.get(at_once, [7])
    weights = torch.randn(2, 7, 4)
    gradients = [torch.autograd.grad((each * weights).sum(), text)[0] for each in (found[0], expected[0])]
    torch.testing.assert_close(*gradients)


def test_extreme_scores_stay_finite() -> None:
    attention = SelfAttention(2)
    for scale in (1e4, 1e-4):
        passages = (scale * torch.randn(1, 5, 2)).requires_grad_()
        attended = attention(passages, mask_of([4], 5))
        assert attended.isfinite().all()
        (gradient,) = torch.autograd.grad(attended.sum(), passages)
        assert gradient.isfinite().all()
