"""A linear-chain conditional random field whose tag sequences can be constrained, and decoding without one.

# B batch, T tokens, K tags
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torchcrf
from torch import Tensor, nn

from elmo_tasks.text.tag_schemes import TagScheme, allowed_transitions
from elmo_tasks.text.tokens import mask_of_lengths

# The score of what is forbidden: far below every real score, but finite, since infinities would lead to NaN.
FORBIDDEN = -1e30


class TransitionConstraints(nn.Module):
    """What is allowed, True, and what is forbidden, False. It follows from the labels and is not saved.

    It is a module, so that it moves to a device with the module that it is part of.

    Arguments:
        start: (K,) bool, the tags that a sentence may begin with.
        between: (K, K) bool, from the tag of the first axis to that of the second.
        end: (K,) bool, the tags that a sentence may end with.
    """

    start: Tensor
    between: Tensor
    end: Tensor

    def __init__(self, start: Tensor, between: Tensor, end: Tensor) -> None:
        super().__init__()
        for name, allowed in (("start", start), ("between", between), ("end", end)):
            self.register_buffer(name, allowed, persistent=False)

    @classmethod
    def none(cls, num_tags: int) -> TransitionConstraints:
        """Everything is allowed."""
        return cls(*(torch.ones(shape, dtype=torch.bool) for shape in (num_tags, (num_tags, num_tags), num_tags)))

    @classmethod
    def of_scheme(cls, tags: Sequence[str], scheme: TagScheme) -> TransitionConstraints:
        """What a tag scheme allows; see `allowed_transitions`."""
        return cls(*map(torch.from_numpy, allowed_transitions(tags, scheme)))

    def allow(self, tags: Tensor, mask: Tensor) -> Tensor:
        """Whether each sentence's tags are allowed, (B,) bool; tags are (B, T) int64, the mask (B, T) bool."""
        steps = self.between[tags[:, :-1], tags[:, 1:]] | ~mask[:, 1:]  # (B, T - 1)
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)  # (B,)
        return self.start[tags[:, 0]] & steps.all(dim=1) & self.end[last]


class ConditionalRandomField(torchcrf.CRF):
    """A distribution over the tag sequences of a sentence, from scores of single tags and of neighbouring pairs.

    Source: Lafferty, McCallum and Pereira (2001). The parameters, the likelihood and Viterbi are pytorch-crf's. In
    addition:

    - What `constraints` forbid is never decoded and has no probability: allowed sequences share all of it.
    - Marginals of single tags, and the probability of a set of tags at each token.

    It computes in double precision (single on devices that have no other), whatever the emissions' type. Masks must be
    contiguous: the real tokens of a sentence, at least one, come first.

    Arguments:
        num_tags: K.
        constraints: what is allowed; None: everything.
    """

    start_transitions: Tensor  # (K,)
    transitions: Tensor  # (K, K)
    end_transitions: Tensor  # (K,)

    def __init__(self, num_tags: int, constraints: TransitionConstraints | None = None) -> None:
        super().__init__(num_tags, batch_first=True)
        self.constraints = constraints if constraints is not None else TransitionConstraints.none(num_tags)

    def log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The log probability of each sentence's tags, (B,), in double precision.

        Arguments:
            emissions: (B, T, K), the score of each tag at each token.
            tags: (B, T) int64; what stands in the padding does not matter.
            mask: (B, T) bool.

        Raises:
            ValueError: shapes do not fit, the mask is not contiguous, or the constraints forbid one of the sequences.
        """
        emissions = _checked(self, emissions, mask, tags)
        tags = tags.masked_fill(~mask, 0)
        if (forbidden := ~self.constraints.allow(tags, mask)).any():
            sentence = int(torch.nonzero(forbidden)[0])
            raise ValueError(f"sentence {sentence} of the batch has tags that the constraints forbid")
        return self._constrained()(emissions, tags, mask, reduction="none")

    def log_probability(self, emissions: Tensor, allowed: Tensor, mask: Tensor) -> Tensor:
        """The log probability, (B,), that each token has one of its allowed tags, in double precision.

        Arguments:
            emissions: (B, T, K).
            allowed: (B, T, K) bool, for each token at least one; what stands in the padding does not matter.
            mask: (B, T) bool.
        """
        emissions, crf = _checked(self, emissions, mask), self._constrained()
        among_allowed = emissions.masked_fill(~allowed, FORBIDDEN)
        return crf.log_partition(among_allowed, mask) - crf.log_partition(emissions, mask)

    def best_tags(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The most probable allowed tag sequence of each sentence (Viterbi).

        Arguments:
            emissions: (B, T, K).
            mask: (B, T) bool.

        Returns:
            the tags, (B, T) int64, 0 in the padding.

        Raises:
            ValueError: shapes do not fit, the mask is not contiguous, or no sequence of a sentence's length is allowed.
        """
        return self._constrained().best_tags(emissions, mask)

    def marginals(self, emissions: Tensor, mask: Tensor, temperature: float = 1.0) -> Tensor:
        """The probability of each tag at each token given the whole sentence, (B, T, K), 0 in the padding.

        It is the gradient of the log partition by the emissions, and has no gradient itself. The temperature divides
        the scores of tags and of transitions; what is forbidden stays so.
        """
        with torch.inference_mode(False), torch.enable_grad():
            crf = self._constrained()
            # A copy, since autograd takes no tensors of inference mode.
            emissions = (_checked(self, emissions, mask) / temperature).detach().clone().requires_grad_()
            for name in ("start_transitions", "transitions", "end_transitions"):
                setattr(crf, name, getattr(crf, name).detach() / temperature)
            total = crf.log_partition(emissions, mask.clone()).sum()
            return torch.autograd.grad(total, emissions)[0]

    def _constrained(self) -> _ConstrainedScores:
        return _ConstrainedScores(self.start_transitions, self.transitions, self.end_transitions, self.constraints)


class ConstrainedDecoder(nn.Module):
    """Finds the best of the allowed tag sequences where tags are scored one by one, without scores of pairs.

    Source: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2.2. In place of their
    search, Viterbi with transition scores of zero and minus infinity finds the best sequence.

    Arguments:
        constraints: what is allowed, of K tags.
        start_score: what sums begin with, in single precision, and 0 in double precision. AllenNLP's `viterbi_decode`
            begins with 100,000, so that sums keep two digits after the point; of sequences whose sums are then equal,
            the first is taken. So does AllenNLP 0.9, and later versions with 62 tags or more.
    """

    def __init__(self, constraints: TransitionConstraints, start_score: float = 0.0) -> None:
        super().__init__()
        self.constraints = constraints
        self.start_score = start_score

    def best_tags(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The allowed tag sequence of each sentence with the highest sum of scores.

        Arguments, results and errors are those of `ConditionalRandomField.best_tags`.
        """
        zeros = emissions.new_zeros(len(self.constraints.start))
        crf = _ConstrainedScores(zeros + self.start_score, zeros.expand(len(zeros), -1), zeros, self.constraints)
        return crf.best_tags(emissions, mask, torch.float32 if self.start_score else None)


class _ConstrainedScores(torchcrf.CRF):
    """pytorch-crf's methods for scores that are given, in double precision, and `FORBIDDEN` where nothing is allowed.

    It lives for one call, so that parameters, their names in files and their gradients stay those of the random field.
    """

    def __init__(self, start: Tensor, between: Tensor, end: Tensor, constraints: TransitionConstraints) -> None:
        nn.Module.__init__(self)  # torchcrf's would make parameters
        self.num_tags, self.batch_first = len(start), True
        self.constraints = constraints
        self.start_transitions = _double(start).masked_fill(~constraints.start, FORBIDDEN)
        self.transitions = _double(between).masked_fill(~constraints.between, FORBIDDEN)
        self.end_transitions = _double(end).masked_fill(~constraints.end, FORBIDDEN)

    def log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The log of the summed exponentials of the scores of all tag sequences, (B,)."""
        return self._compute_normalizer(emissions.transpose(0, 1), mask.transpose(0, 1))

    def _compute_normalizer(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The log partition, (B,), with time first and the sums of pytorch-crf, whose gradient takes quadratic time.

        Its `emissions[i]` has a gradient of the size of all emissions for each token; that of `unbind` is made once.
        """
        first, *others = emissions.unbind()
        score = self.start_transitions + first  # (B, K)
        for emission, real in zip(others, mask[1:].unsqueeze(2), strict=True):
            pairs = score.unsqueeze(2) + self.transitions + emission.unsqueeze(1)  # (B, K, K)
            score = torch.where(real, pairs.logsumexp(dim=1), score)
        return (score + self.end_transitions).logsumexp(dim=1)

    def _compute_score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The score of one tag sequence, (B,), with time first, as in pytorch-crf, which adds token by token.

        All tokens at once make the likelihood and its gradient 1.5 times as fast. Emissions and tags are 0 in padding.
        """
        of_tokens = emissions.gather(2, tags.unsqueeze(2)).squeeze(2).sum(0)
        of_pairs = (self.transitions[tags[:-1], tags[1:]] * mask[1:]).sum(0)
        last = tags.gather(0, mask.sum(0, keepdim=True) - 1).squeeze(0)
        return self.start_transitions[tags[0]] + of_tokens + of_pairs + self.end_transitions[last]

    @torch.no_grad()
    def best_tags(self, emissions: Tensor, mask: Tensor, number_type: torch.dtype | None = None) -> Tensor:
        """See `ConditionalRandomField.best_tags`. It runs on the CPU, since `decode` reads the tags one by one."""
        emissions = _checked(self, emissions, mask)
        for name in ("start_transitions", "transitions", "end_transitions"):
            setattr(self, name, getattr(self, name).to("cpu", number_type))
        rows = self.decode(emissions.to("cpu", number_type), mask.cpu())
        tags = torch.zeros_like(mask, dtype=torch.int64)
        tags[mask] = torch.tensor([tag for row in rows for tag in row], device=mask.device)
        if (forbidden := ~self.constraints.allow(tags, mask)).any():
            sentence = int(torch.nonzero(forbidden)[0])
            raise ValueError(
                f"the constraints allow no sequence of {len(rows[sentence])} tags "
                f"(the length of sentence {sentence} of the batch)"
            )
        return tags


def _checked(crf: torchcrf.CRF, emissions: Tensor, mask: Tensor, tags: Tensor | None = None) -> Tensor:
    """The emissions in double precision, 0 in the padding; ValueError where shapes or mask are not as expected."""
    crf._validate(emissions, tags, mask)
    if not torch.equal(mask, mask_of_lengths(mask.sum(1), mask.shape[1])):
        raise ValueError("the mask has a gap; the tokens of a sentence must come first")
    return _double(emissions).masked_fill(~mask.unsqueeze(2), 0)


def _double(scores: Tensor) -> Tensor:
    return scores.to(torch.float32 if scores.device.type == "mps" else torch.float64)
