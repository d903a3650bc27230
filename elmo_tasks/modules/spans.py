"""The best spans of a sequence by scores of their first and last tokens, up to a longest length.

# B batch, T tokens, L tokens of the longest span, N spans that are asked for
"""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_tasks.text.tokens import TensorRecord

_NONE = float("-inf")


@dataclasses.dataclass(frozen=True)
class BestSpans(TensorRecord):
    """The most probable spans of each sequence, the best first.

    If a sequence has fewer spans than that, the rest have the tokens -1 and the probability 0.
    """

    starts: Tensor  # (B, N) int64, first tokens
    ends: Tensor  # (B, N) int64, last tokens: ends are inclusive
    probabilities: Tensor  # (B, N)


@torch.no_grad()
def best_spans(
    start_logits: Tensor, end_logits: Tensor, mask: Tensor, max_length: int, num_spans: int = 1, temperature: float = 1
) -> BestSpans:
    """Finds the best spans by the sum of their first token's start logit and their last token's end logit.

    A span is allowed if it has at most `max_length` tokens and its first and last tokens are real. The probability of a
    span is the softmax of the sums over all allowed spans, that is, the product of independent probabilities of start
    and end, given that they make an allowed span. Of spans with equal scores, the one that starts first comes first,
    then the shorter one, so that padding and the other sequences of a batch change nothing.

    Source: the search over answers of limited length of Clark and Gardner 2017, and of Seo et al. 2017 without a limit;
    their probabilities are not renormalized. Time and memory grow with T x max_length, never with T x T.

    Arguments:
        start_logits: (B, T), floating point; half precision is computed in single.
        end_logits: (B, T).
        mask: (B, T) bool, with a real token in each sequence; logits outside of it may be anything.
        max_length: most tokens in a span, at least 1.
        num_spans: N, at least 1.
        temperature: divides the sums of which the softmax is taken.
    """
    longest = min(max_length, mask.shape[1])  # L
    scores = _span_scores(start_logits, end_logits, mask, longest).flatten(1)  # (B, T * L), by start, then by length
    log_partition = (scores / temperature).logsumexp(dim=1, keepdim=True)  # (B, 1)
    best, indices = _first_maxima(scores, num_spans)  # (B, N), (B, N)
    is_span = best > _NONE
    starts = indices // longest
    return BestSpans(
        starts=starts.masked_fill(~is_span, -1),
        ends=(starts + indices % longest).masked_fill(~is_span, -1),
        probabilities=(best / temperature - log_partition).exp().clamp(max=1),
    )


def _span_scores(start_logits: Tensor, end_logits: Tensor, mask: Tensor, longest: int) -> Tensor:
    """(B, T, L): the score of the span of l + 1 tokens that starts at token t; minus infinity where none is allowed."""
    dtype = torch.promote_types(start_logits.dtype, torch.float32)
    start_logits, end_logits = (logits.to(dtype).masked_fill(~mask, _NONE) for logits in (start_logits, end_logits))
    behind = F.pad(end_logits, (0, longest - 1), value=_NONE).unfold(1, longest, 1)  # (B, T, L), a view
    return start_logits.unsqueeze(2) + behind


def _first_maxima(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest scores of each row and their indices, (B, N) each; overwrites `scores`.

    `topk` would be free to choose any of equal scores; `max` takes the first.
    """
    maxima = []
    for _ in range(count):
        maxima.append(scores.max(dim=1, keepdim=True))  # (B, 1), (B, 1)
        scores.scatter_(1, maxima[-1].indices, _NONE)
    best, indices = zip(*maxima, strict=True)
    return torch.cat(best, dim=1), torch.cat(indices, dim=1)
