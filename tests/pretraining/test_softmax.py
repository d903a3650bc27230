"""The sampled and the full softmax against their definitions."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from elmo_tasks.pretraining import softmax
from elmo_tasks.pretraining.softmax import Candidates, FullSoftmax, SampledSoftmax, softmax_losses

TOKENS, SIZE, WORDS = 7, 4, 30


@pytest.fixture(params=[1 << 22, 25], ids=["at once", "in pieces"])
def scores_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "_SCORES_AT_ONCE", request.param)


def draw_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(5)
    hidden = torch.randn(TOKENS, SIZE, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(WORDS, SIZE, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(WORDS, dtype=torch.float64, requires_grad=True)
    return hidden, torch.tensor([0, 3, 3, 29, 7, 1, 12]), weight, bias


@pytest.mark.usefixtures("scores_at_once")
def test_full_softmax_is_the_cross_entropy() -> None:
    hidden, targets, weight, bias = draw_inputs()
    expected = functional.cross_entropy(hidden @ weight.t() + bias, targets, reduction="sum")
    [loss] = softmax_losses([hidden], [targets], weight, bias, FullSoftmax().draw(WORDS), torch.float64)
    variables = (hidden, weight, bias)
    torch.testing.assert_close(loss, expected)
    gradients, expected_gradients = (torch.autograd.grad(3.0 * each, variables) for each in (loss, expected))
    torch.testing.assert_close(gradients, expected_gradients)


@pytest.mark.usefixtures("scores_at_once")
def test_sampled_softmax_is_its_definition() -> None:
    hidden, targets, weight, bias = draw_inputs()
    candidates = SampledSoftmax(num_samples=6).draw(WORDS)
    assert candidates is not None
    words = torch.tensor([3, 4, 7, 20, 2, 0])  # three of them are targets of some token
    candidates = Candidates(words, candidates.log_expected.double())
    corrected = hidden @ weight.t() + bias - candidates.log_expected  # (N, V)
    losses = []
    for scores, target in zip(corrected, targets, strict=True):
        others = scores[words[words != target]]
        losses.append(torch.cat([scores[target][None], others]).logsumexp(dim=0) - scores[target])
    expected = torch.stack(losses).sum()
    [loss] = softmax_losses([hidden], [targets], weight, bias, candidates, torch.float64)
    variables = (hidden, weight, bias)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, variables), torch.autograd.grad(expected, variables))


@pytest.mark.parametrize("num_samples", [6, WORDS])
def test_without_gradients_the_losses_are_the_same_and_cost_a_third(num_samples: int) -> None:
    hidden, targets, weight, bias = draw_inputs()
    candidates = SampledSoftmax(num_samples=num_samples).draw(WORDS)
    losses, costs = [], []
    for with_gradients in (True, False):
        with torch.set_grad_enabled(with_gradients), FlopCounterMode(display=False) as counter:
            # As a model gives them: computed from its weights.
            [loss] = softmax_losses([hidden * 1.0], [targets], weight, bias, candidates, torch.float64)
        losses.append(loss.item())
        costs.append(counter.get_total_flops())
    assert losses[0] == losses[1]
    assert costs[0] == 3 * costs[1] > 0


def test_drawn_words_are_distinct_and_as_frequent_as_stated() -> None:
    torch.manual_seed(6)
    repeats, counts, expected = 2000, torch.zeros(WORDS), torch.zeros(WORDS)
    for _ in range(repeats):
        candidates = SampledSoftmax(num_samples=8).draw(WORDS)
        assert candidates is not None
        assert len(candidates.words.unique()) == 8
        counts[candidates.words] += 1
        expected += candidates.log_expected.exp()
    assert counts[0] > 2 * counts[10] > 2 * counts[29] > 0
    # Binomial deviations are at most sqrt(0.25 / 2000) = 0.011; the formula itself is off by about as much.
    torch.testing.assert_close(counts / repeats, expected / repeats, atol=0.05, rtol=0.0)


def test_the_expected_counts_add_up_to_the_words_that_are_drawn() -> None:
    torch.manual_seed(6)
    sums = []
    for _ in range(50):
        candidates = SampledSoftmax(num_samples=25).draw(WORDS)  # after many tries
        assert candidates is not None
        sums.append(candidates.log_expected.exp().sum().item())
    assert sum(sums) / len(sums) == pytest.approx(25, rel=0.05)


def test_all_words_are_compared_where_more_would_be_drawn_than_there_are() -> None:
    assert SampledSoftmax(num_samples=WORDS).draw(WORDS) is None
    candidates = SampledSoftmax(num_samples=WORDS - 1).draw(WORDS)
    assert candidates is not None
    assert len(candidates.words.unique()) == WORDS - 1
    assert SampledSoftmax().draw(8192) is None
    candidates = SampledSoftmax().draw(8193)
    assert candidates is not None
    assert len(candidates.words) == 8192
