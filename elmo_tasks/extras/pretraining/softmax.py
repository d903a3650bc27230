"""The language model's softmax over its output vocabulary: whole, or over sampled words.

# N tokens, P features of one direction, V words of the output vocabulary, S candidates that tokens are compared with
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

import torch
from pydantic import Field
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_tasks.config import Part
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.errors import DataError
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.text import BYTE_ORDER_MARK, read_lines
from elmo_tasks.text.tokens import TensorRecord

UNKNOWN = "<UNK>"
_NOT_A_LINE = re.compile(rf"^$|^{BYTE_ORDER_MARK}|[\r\n]")  # readers leave out a byte order mark that begins a line
_FIRST = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN)
UNKNOWN_NUMBER = _FIRST.index(UNKNOWN)
NUM_SPECIAL_WORDS = len(_FIRST)

_SCORES_AT_ONCE = 1 << 21  # of tokens with candidates: 8 MB, which may fit into a processor's caches
_SCORES_AT_ONCE_ON_GPU = 1 << 28

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])


@functools.cache
def fused(function: _FunctionT) -> _FunctionT:
    """The function, compiled at its first call if Triton is installed, which torch's compiler needs for CUDA devices.

    It is compiled anew for each shape: for calls of many shapes, the plain function is better.
    """
    if importlib.util.find_spec("triton") is None:
        return function
    return cast("_FunctionT", torch.compile(function, dynamic=False))


class OutputVocabulary:
    """The words of the softmax: sentence borders, the unknown word, then the others, the most frequent first.

    The order is that of bilm-tf's vocabulary files; the sampling of candidates depends on it.

    Arguments:
        words: distinct words, most frequent first; `<S>`, `</S>` and `<UNK>` are moved before them.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words: tuple[str, ...] = (*_FIRST, *(word for word in words if word not in _FIRST))
        self._numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, tokens: Iterable[str]) -> list[int]:
        """The tokens' indices among the words; unknown words have that of `<UNK>`."""
        return [self._numbers.get(token, UNKNOWN_NUMBER) for token in tokens]

    def fingerprint(self) -> str:
        """The SHA-256 of the words in their order, in hexadecimal."""
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Writes one word per line, as bilm-tf does, atomically."""
        with atomic_write(path) as stream:
            stream.writelines(f"{word}\n".encode() for word in self.words)

    @classmethod
    def load(cls, path: str | Path) -> OutputVocabulary:
        """Reads a file with one word per line.

        Raises:
            DataError: the first three lines are not `<S>`, `</S>` and `<UNK>`, or a line is empty or repeated.
        """
        words: dict[str, int] = {}
        for line, word in read_lines(path):
            if line <= len(_FIRST) and word != _FIRST[line - 1]:
                raise DataError(
                    path, f"got {word!r}; expected {_FIRST[line - 1]!r}, as bilm-tf's vocabularies have", line
                )
            if not word or word in words:
                problem = "is empty" if not word else f"{word!r} is already on line {words[word]}"
                raise DataError(path, f"{problem}; expected one word per line, each once", line)
            words[word] = line
        if len(words) < len(_FIRST):
            raise DataError(path, f"got {len(words)} lines; expected <S>, </S>, <UNK> and the words, one per line")
        return cls(list(words)[len(_FIRST) :])


def most_frequent(types: Sequence[str], counts: Iterable[int], size: int | None, min_count: int) -> OutputVocabulary:
    """The vocabulary of a corpus: its most frequent words, except those that a file with a word per line cannot hold.

    Arguments:
        types, counts: distinct words, most frequent first, and how often each occurs.
        size: most words, `<S>`, `</S>` and `<UNK>` included; None for all.
        min_count: less frequent words are unknown.
    """
    frequent = (word for word, count in zip(types, counts, strict=True) if count >= min_count)
    words = [word for word in frequent if not _NOT_A_LINE.search(word)]
    return OutputVocabulary(words if size is None else words[: max(0, size - len(_FIRST))])


@dataclasses.dataclass(frozen=True)
class Candidates(TensorRecord):
    """The words that tokens are compared with, drawn for each step."""

    words: Tensor  # (S,) int64, no word twice
    log_expected: Tensor  # (V,) the logarithm of how often each word is expected among the candidates


class SoftmaxConfig(Part):
    """What the language model's targets are compared with in training."""

    default_type: ClassVar[str | None] = "sampled"

    def draw(self, num_words: int, device: torch.device | None = None) -> Candidates | None:
        """The candidates of a step, or None for all words; draws from torch's generator of the device."""
        raise NotImplementedError


class FullSoftmax(SoftmaxConfig):
    """All words of the output vocabulary."""

    type: Literal["full"] = "full"

    def draw(self, num_words: int, device: torch.device | None = None) -> Candidates | None:
        return None


class SampledSoftmax(SoftmaxConfig):
    """Words drawn log-uniformly by frequency rank, without replacement, the same ones for the whole batch.

    Source: Jean et al. 2015, section 3, in the form of TensorFlow's `sampled_softmax_loss`, which bilm-tf uses: the
    scores are corrected by the logarithm of the expected counts, and a token's target is left out of its candidates.
    """

    type: Literal["sampled"] = "sampled"
    num_samples: Annotated[int, Field(ge=1)] = Field(8192, description="words drawn for each step")

    def draw(self, num_words: int, device: torch.device | None = None) -> Candidates | None:
        if self.num_samples >= num_words:
            return None
        ranks = torch.arange(num_words, dtype=torch.float64, device=device)
        chances = torch.log1p(1.0 / (ranks + 1.0)) / math.log(num_words + 1.0)
        # Words that arrive at random times, each at the rate of its chance, come in the order of draws from these
        # chances, and those that have come before are passed over.
        times, words = (torch.empty_like(chances).exponential_() / chances).topk(self.num_samples, largest=False)
        # The probability to have arrived by the time of the last one: 1 - exp(-p t).
        return Candidates(words, torch.log(-torch.expm1(-times[-1] * chances)).float())


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
    if not torch.is_grad_enabled():  # an autograd function is not told, and would compute the gradients of weights
        weight, bias = weight.detach(), bias.detach()
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
        at_once = _SCORES_AT_ONCE_ON_GPU if own.is_cuda else _SCORES_AT_ONCE
        step = max(1, at_once // len(bias))
        compare = fused(_compare) if own.is_cuda else _compare
        for start in range(0, len(own), step):
            rows = slice(start, start + step)
            scores = functional.linear(hidden[rows], weight)  # (n, S)
            # A token's target is not among its candidates.
            places = indices[rows].clamp(min=0)[:, None]
            others = torch.where(indices[rows, None] < 0, scores.gather(1, places), -torch.inf)
            scores.scatter_(1, places, others)
            if not wants_gradient:
                losses = _exponentials(scores, bias, own[rows])[0]
            else:
                losses, of_own[rows], of_bias_here, factors = compare(scores, bias, own[rows])
                of_bias += of_bias_here
                of_weight += factors.t() @ hidden[rows]
                of_hidden[rows] = factors @ weight
            total += losses.sum(dtype=torch.float64)
        ctx.save_for_backward(of_hidden, of_own, of_weight.to(weight.dtype), of_bias)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return *(each * gradient.to(each.dtype) for each in ctx.saved_tensors), None


def _exponentials(scores: Tensor, bias: Tensor, own: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores (n, S) without their biases (S,), own scores (n,) -> losses (n,), exponentials (n, S), (n,), their sums.

    The highest score of a row is subtracted before, so that no exponential is too large.
    """
    scores = scores.to(own.dtype).add_(bias)
    highest = torch.maximum(scores.amax(dim=1), own)
    exponentials = scores.sub_(highest[:, None]).exp_()
    of_own = (own - highest).exp_()
    sums = exponentials.sum(dim=1) + of_own
    return highest + sums.log() - own, exponentials, of_own, sums


def _compare(scores: Tensor, bias: Tensor, own: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What `_exponentials` reads -> losses (n,); the gradients of own scores (n,), biases (S,) and scores (n, S)."""
    losses, exponentials, of_own, sums = _exponentials(scores, bias, own)
    chances = exponentials.div_(sums[:, None])
    return losses, of_own / sums - 1.0, chances.sum(dim=0), chances.to(scores.dtype)
