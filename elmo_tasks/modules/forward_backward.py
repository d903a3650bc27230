"""Sums over all tag sequences of a linear chain, and their gradient, without autograd through time.

The reference is `log_partition_in_log_space`. Forward and backward are 1.6 times as fast (32 sentences of up to 30
tokens, 17 tags, one core); `python -m benchmarks.tagger_step` measures whole steps of a tagger.

The backward recursion is the forward recursion over the reversed sentence, with the transitions transposed and the
scores of the first and the last tag exchanged. Both therefore run together, as one batched product per time step, in
probabilities that every step rescales. The gradient (posteriors, expected transitions) is then computed for all time
steps at once.

Probabilities can underflow where log probabilities cannot. In double precision that needs scores that differ by
hundreds. A batch in which it could happen is computed by the reference instead.

# B batch, T time steps (tokens), K tags; index 0 of an axis of size 2: forward, 1: backward
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_tasks.modules.bidirectional import reversal
from elmo_tasks.text.tokens import mask_of_lengths

# The score of what is forbidden: far below every real score, but finite, since infinities would lead to NaN.
FORBIDDEN = -1e30


@dataclasses.dataclass(frozen=True)
class ChainScores:
    """The scores of a batch of linear chains. What is forbidden has the score `FORBIDDEN`.

    Every sentence has at least one token, and its real tokens come first.
    """

    emissions: Tensor  # (T, B, K)
    start: Tensor  # (K,)
    transitions: Tensor  # (K, K), from the tag of the first axis to that of the second
    end: Tensor  # (K,)
    lengths: Tensor  # (B,) int64, in tokens

    @property
    def is_real(self) -> Tensor:
        """(T, B), True within a sentence."""
        return mask_of_lengths(self.lengths, len(self.emissions)).T


def log_partition(scores: ChainScores) -> Tensor:
    """The log of the summed exponentials of the scores of all allowed tag sequences, (B,), differentiable once.

    `FORBIDDEN`, or less, where no sequence of that length is allowed.
    """
    sums = _chain_sums(scores)
    if not sums.exact:
        return log_partition_in_log_space(scores)
    return _LogPartition.apply(sums, scores.lengths, scores.emissions, scores.start, scores.transitions, scores.end)


def posteriors(scores: ChainScores) -> Tensor:
    """The probability of each tag at each token given the whole sentence, (T, B, K); zero outside the sentences.

    It has no gradient.
    """
    sums = _chain_sums(scores)
    if sums.exact:
        return sums.posteriors
    with torch.inference_mode(False), torch.enable_grad():
        # Copies, since autograd takes no tensors of inference mode.
        copies = {field.name: getattr(scores, field.name).detach().clone() for field in dataclasses.fields(scores)}
        copies["emissions"].requires_grad_()
        total = log_partition_in_log_space(ChainScores(**copies))
        return torch.autograd.grad(total.sum(), copies["emissions"])[0]


def log_partition_in_log_space(scores: ChainScores) -> Tensor:
    """The reference of `log_partition`: the textbook recursion, slower, but exact for any scores."""
    value = scores.start + scores.emissions[0]  # (B, K): the log of the sum over all beginnings that end in each tag
    values = [value]
    for emission in scores.emissions[1:]:
        value = (value.unsqueeze(2) + scores.transitions).logsumexp(dim=1) + emission
        values.append(value)
    return (at_last_token(torch.stack(values), scores.lengths) + scores.end).logsumexp(dim=1)


@dataclasses.dataclass(frozen=True)
class _ChainSums:
    """The result of one pass over the batch. If `exact` is False, numbers may have underflowed: do not use the rest."""

    exact: bool
    log_partition: Tensor  # (B,)
    posteriors: Tensor  # (T, B, K)
    # The expected count of a transition i -> j after token t is leaving[t, :, i] * steps[i, j] * entering[t, :, j].
    leaving: Tensor  # (T - 1, B, K)
    entering: Tensor  # (T - 1, B, K), zero from a sentence's last token on
    steps: Tensor  # (K, K)


class _LogPartition(torch.autograd.Function):
    """Returns a log partition that is already computed; its gradient is the expected count of each score."""

    @staticmethod
    def forward(ctx: Any, sums: _ChainSums, lengths: Tensor, *_: Tensor) -> Tensor:
        """The other arguments are the scores that have gradients: emissions, start, transitions and end."""
        ctx.save_for_backward(sums.posteriors, sums.leaving, sums.entering, sums.steps, lengths)
        return sums.log_partition

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        posteriors, leaving, entering, steps, lengths = ctx.saved_tensors
        emissions = posteriors * gradient.unsqueeze(1)  # (T, B, K)
        weighted = (leaving * gradient.unsqueeze(1)).flatten(0, 1)  # ((T - 1) * B, K)
        transitions = steps * (weighted.t() @ entering.flatten(0, 1))  # (K, K)
        end = at_last_token(emissions, lengths).sum(0)  # (K,)
        return None, None, emissions, emissions[0].sum(0), transitions, end


@torch.no_grad()
def _chain_sums(scores: ChainScores) -> _ChainSums:
    padding = ~scores.is_real.unsqueeze(2)  # (T, B, 1)
    emissions, emission_peaks = _scaled(scores.emissions.masked_fill(padding, 0), dim=2)  # (T, B, K), (T, B, 1)
    borders, border_peaks = _scaled(torch.stack([scores.start, scores.end]), dim=1)  # (2, K), (2, 1)
    steps, step_peak = _scaled(scores.transitions, dim=(0, 1))  # (K, K), (1, 1)

    order = reversal(scores.lengths, len(emissions))  # (T, B)
    both_emissions = torch.stack([emissions, _reorder(emissions, order)], dim=1)  # (T, 2, B, K)
    both_steps = torch.stack([steps, steps.t()])  # (2, K, K)
    values, scales = _recursion(borders.unsqueeze(1), both_steps, both_emissions)  # (T, 2, B, K), (T, 2, B, 1)
    values.masked_fill_(padding.unsqueeze(1), 0)

    before = values[:, 0]  # (T, B, K): up to each token and its emission
    after = _reorder(values[:, 1], order)  # (T, B, K): from each token's emission on
    beyond = torch.empty_like(after)  # (T, B, K): from each token on, without its emission
    torch.matmul(after[1:], steps.t(), out=beyond[:-1])
    beyond[scores.lengths - 1, torch.arange(len(scores.lengths), device=scores.lengths.device)] = borders[1]
    joint = torch.where(padding, 0, before * beyond)  # (T, B, K)
    totals = joint.sum(2, keepdim=True).masked_fill(padding, 1)  # (T, B, 1)

    peaks = (emission_peaks + step_peak).masked_fill(padding, 0).sum((0, 2)) - step_peak.squeeze() + border_peaks.sum()
    scale_logs = scales[:, 0].log().masked_fill(padding, 0).sum((0, 2))  # (B,)
    return _ChainSums(
        exact=_is_exact(totals, values, emissions, steps, borders),
        log_partition=at_last_token(totals, scores.lengths).squeeze(1).log() + scale_logs + peaks,
        posteriors=joint / totals,
        leaving=before[:-1] / totals[:-1],
        entering=after[1:],
        steps=steps,
    )


def _recursion(borders: Tensor, steps: Tensor, emissions: Tensor) -> tuple[Tensor, Tensor]:
    """Both recursions: borders (2, 1, K), steps (2, K, K), emissions (T, 2, B, K) -> values, and scales (T, 2, B, 1).

    values[t] sums to one over the tags; times the product of scales[: t + 1] it is the sum over all beginnings.
    """
    values = torch.empty_like(emissions)
    scales = emissions.new_empty(*emissions.shape[:3], 1)
    value = None
    for emission, value_out, scale in zip(emissions.unbind(), values.unbind(), scales.unbind(), strict=True):
        if value is None:
            torch.mul(borders, emission, out=value_out)
        else:
            torch.bmm(value, steps, out=value_out).mul_(emission)
        torch.sum(value_out, dim=2, keepdim=True, out=scale)
        value = value_out.div_(scale)
    return values, scales


def _is_exact(totals: Tensor, *factors: Tensor) -> bool:
    """Whether it is certain that no sum lost anything to underflow.

    Each value of the recursion is a sum of products of at most one number from each of `factors`. If the product of
    their smallest numbers (except zeros, which stand for what is forbidden) has full precision, every value has, and by
    induction no allowed sequence was lost. NaN, from a sum of zeros only, is not exact.
    """
    limits = torch.finfo(totals.dtype)
    smallest = torch.stack([torch.where(factor > 0, factor, 1).amin() for factor in factors])
    safe = torch.stack([smallest.log().sum().exp(), totals.amin()]) >= limits.tiny / limits.eps
    return bool(safe.all())


def _scaled(scores: Tensor, dim: int | tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """(exp(scores - peak), peak), zero only for what is forbidden."""
    peak = scores.amax(dim=dim, keepdim=True)
    scaled = (scores - peak).exp().clamp_min(torch.finfo(scores.dtype).tiny)
    return scaled.masked_fill(scores <= FORBIDDEN / 2, 0), peak


def at_last_token(values: Tensor, lengths: Tensor) -> Tensor:
    """(T, B, ...) -> (B, ...): the values at each sentence's last token."""
    return values[lengths - 1, torch.arange(len(lengths), device=lengths.device)]


def _reorder(values: Tensor, order: Tensor) -> Tensor:
    return values.gather(0, order.unsqueeze(2).expand_as(values))
