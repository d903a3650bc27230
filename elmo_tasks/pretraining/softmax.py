"""The language model's softmax over its output vocabulary: whole, or over sampled words.

# N tokens, P features of one direction, V words of the output vocabulary, S candidates that tokens are compared with
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_tasks.config import Part
from elmo_tasks.text.tokens import TensorRecord

_SCORES_AT_ONCE = 1 << 21  # of tokens with candidates: 8 MB, which may fit into a processor's caches


@dataclasses.dataclass(frozen=True)
class Candidates(TensorRecord):
    """The words that tokens are compared with, drawn for each step."""

    words: Tensor  # (S,) int64, no word twice
    log_expected: Tensor  # (V,) the logarithm of how often each word is expected among the candidates


class SoftmaxConfig(Part):
    """What the language model's targets are compared with in training."""

    default_type: ClassVar[str | None] = "sampled"

    def draw(self, num_words: int) -> Candidates | None:
        """The candidates of a step, or None for all words; draws from torch's generator."""
        raise NotImplementedError


class FullSoftmax(SoftmaxConfig):
    """All words of the output vocabulary."""

    type: Literal["full"] = "full"

    def draw(self, num_words: int) -> Candidates | None:
        return None


class SampledSoftmax(SoftmaxConfig):
    """Words drawn log-uniformly by frequency rank, without replacement, the same ones for the whole batch.

    Source: Jean et al. 2015, section 3, in the form of TensorFlow's `sampled_softmax_loss`, which bilm-tf uses: the
    scores are corrected by the logarithm of the expected counts, and a token's target is left out of its candidates.
    """

    type: Literal["sampled"] = "sampled"
    num_samples: Annotated[int, Field(ge=1)] = Field(8192, description="words drawn for each step")

    def draw(self, num_words: int) -> Candidates | None:
        if self.num_samples >= num_words:
            return None
        words, num_tries = _draw_log_uniform(num_words, self.num_samples)
        ranks = torch.arange(num_words, dtype=torch.float64)
        probabilities = torch.log1p(1.0 / (ranks + 1.0)) / math.log(num_words + 1.0)
        # The probability to be among the words after this many tries: 1 - (1 - p)^tries.
        log_expected = torch.log(-torch.expm1(num_tries * torch.log1p(-probabilities))).float()
        return Candidates(words, log_expected)


def softmax_losses(
    hidden: Sequence[Tensor],
    targets: Sequence[Tensor],
    weight: Tensor,
    bias: Tensor,
    candidates: Candidates | None,
    dtype: torch.dtype,
) -> list[Tensor]:
    """The summed negative log-likelihood, in nats, of each direction's targets against the same candidates.

    Memory is bounded: scores and their gradient are computed for some tokens at a time.

    Arguments:
        hidden: (N, P) outputs of each direction's topmost layer.
        targets: (N,) int64 words of the output vocabulary, of each direction.
        weight, bias: (V, P) and (V,).
        candidates: from `SoftmaxConfig.draw`; None for all words.
        dtype: of the products' factors, torch.bfloat16 or that of the weights.
    """
    all_targets = torch.cat(list(targets))
    words = all_targets if candidates is None else torch.cat([all_targets, candidates.words])
    rows = functional.embedding(words, weight)  # at once: the gradient of each such call is as large as the table
    own = (torch.cat(list(hidden)) * rows[: len(all_targets)]).sum(dim=1) + bias[all_targets]
    indices = all_targets  # among the candidates
    if candidates is not None:
        indices = torch.full_like(bias, -1, dtype=torch.int64)
        indices[candidates.words] = torch.arange(len(candidates.words), device=bias.device)
        indices = indices[all_targets]
        own = own - candidates.log_expected[all_targets]
        weight = rows[len(all_targets) :]
        bias = bias[candidates.words] - candidates.log_expected[candidates.words]
    weight = weight.to(dtype)
    counts = [len(each) for each in targets]
    parts = zip(hidden, own.split(counts), indices.split(counts), strict=True)
    return [_LossAgainstCandidates.apply(each.to(dtype), scores, weight, bias, where) for each, scores, where in parts]


class _LossAgainstCandidates(torch.autograd.Function):
    """hidden (N, P), own scores (N,), candidates' weights (S, P) and biases (S,), targets' indices (N,) or -1 -> ()"""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, own: Tensor, weight: Tensor, bias: Tensor, indices: Tensor) -> Tensor:
        wants_gradient = any(ctx.needs_input_grad)
        total = own.new_zeros((), dtype=torch.float64)
        of_hidden, of_own = torch.empty_like(hidden), torch.empty_like(own)
        of_weight, of_bias = torch.zeros_like(weight, dtype=own.dtype), torch.zeros_like(bias)
        step = max(1, _SCORES_AT_ONCE // len(bias))
        for start in range(0, len(own), step):
            rows = slice(start, start + step)
            scores = functional.linear(hidden[rows], weight).to(own.dtype).add_(bias)  # (n, S)
            drawn = (indices[rows] >= 0).nonzero().squeeze(1)
            scores[drawn, indices[rows][drawn]] = -torch.inf  # a token's target is not among its candidates
            highest = torch.maximum(scores.amax(dim=1), own[rows])  # (n,)
            chances = scores.sub_(highest[:, None]).exp_()  # (n, S), each times the row's sum
            own_chances = (own[rows] - highest).exp_()
            sums = chances.sum(dim=1) + own_chances
            total += (highest + sums.log() - own[rows]).sum(dtype=torch.float64)
            if wants_gradient:
                chances /= sums[:, None]
                of_bias += chances.sum(dim=0)
                factors = chances.to(weight.dtype)
                of_weight += factors.t() @ hidden[rows]
                of_hidden[rows] = factors @ weight
                of_own[rows] = own_chances / sums - 1.0
        ctx.save_for_backward(of_hidden, of_own, of_weight.to(weight.dtype), of_bias)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return *(each * gradient.to(each.dtype) for each in ctx.saved_tensors), None


def _draw_log_uniform(num_words: int, num_samples: int) -> tuple[Tensor, int]:
    """Distinct words in the order drawn, and the number of tries until the last of them."""
    seen = torch.zeros(num_words, dtype=torch.bool)
    words: list[Tensor] = []
    found = tries = 0
    while True:
        uniform = torch.rand(num_samples, dtype=torch.float64)
        drawn = (torch.exp(uniform * math.log(num_words + 1.0)) - 1.0).long().clamp_(max=num_words - 1)
        first = torch.full((num_words,), num_samples).scatter_reduce_(0, drawn, torch.arange(num_samples), "amin")
        new = torch.zeros(num_samples, dtype=torch.bool)
        new[first[drawn.unique()]] = True
        new &= ~seen[drawn]
        accepted = new.nonzero().squeeze(1)[: num_samples - found]
        words.append(drawn[accepted])
        seen[words[-1]] = True
        found += len(accepted)
        if found == num_samples:
            return torch.cat(words), tries + int(accepted[-1]) + 1
        tries += num_samples
