"""A linear-chain conditional random field whose tag sequences can be constrained, and decoding without one.

# B batch, T tokens, K tags
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
import torchcrf
from torch import Tensor, nn

from elmo_tasks.modules.forward_backward import FORBIDDEN, ChainScores, at_last_token, log_partition, posteriors
from elmo_tasks.text.tag_schemes import TagScheme, allowed_transitions
from elmo_tasks.text.tokens import mask_of_lengths


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


class ConditionalRandomField(torchcrf.CRF):
    """A distribution over the tag sequences of a sentence, from scores of single tags and of neighbouring pairs.

    Source: Lafferty, McCallum and Pereira (2001). The parameters, their names and first values are those of
    pytorch-crf, which this class extends. The inherited `forward` and `decode` ignore constraints. In addition:

    - What `constraints` forbid is never decoded and has no probability: allowed sequences share all of it.
    - Sums over sequences and their gradient need no autograd through time (see `forward_backward`).
    - Marginals of single tags.

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
        for name, shape in (("start", (num_tags,)), ("between", (num_tags, num_tags)), ("end", (num_tags,))):
            if (actual := tuple(getattr(self.constraints, name).shape)) != shape:
                raise ValueError(f"constraints.{name}: shape {actual}; expected {shape}")

    def log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The log probability of each sentence's tags, (B,), in double precision.

        Arguments:
            emissions: (B, T, K), the score of each tag at each token.
            tags: (B, T) int64; what stands in the padding does not matter.
            mask: (B, T) bool.

        Raises:
            ValueError: shapes do not fit, the mask is not contiguous, or the constraints forbid one of the sequences.
        """
        scores = self._chain_scores(emissions, mask)
        if tags.shape != mask.shape:
            raise ValueError(f"tags: shape {tuple(tags.shape)}; expected that of the mask, {tuple(mask.shape)}")
        gold = _score(scores, tags.t())
        # Emissions are far from `FORBIDDEN`; so a score near it holds a forbidden step.
        if (gold < FORBIDDEN / 2).any():
            sentence = int(torch.nonzero(gold < FORBIDDEN / 2)[0])
            raise ValueError(f"sentence {sentence} of the batch has tags that the constraints forbid")
        return gold - log_partition(scores)

    def log_probability(self, emissions: Tensor, allowed: Tensor, mask: Tensor) -> Tensor:
        """The log probability, (B,), that each token has one of its allowed tags, in double precision.

        Arguments:
            emissions: (B, T, K).
            allowed: (B, T, K) bool, for each token at least one; what stands in the padding does not matter.
            mask: (B, T) bool.
        """
        scores = self._chain_scores(emissions, mask)
        among_allowed = scores.emissions.masked_fill(~allowed.transpose(0, 1), FORBIDDEN)
        return log_partition(dataclasses.replace(scores, emissions=among_allowed)) - log_partition(scores)

    def best_tags(self, emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The most probable allowed tag sequence of each sentence (Viterbi).

        Arguments:
            emissions: (B, T, K).
            mask: (B, T) bool.

        Returns:
            the tags, (B, T) int64, 0 in the padding, and their score, (B,), which less the log partition is their log
            probability.

        Raises:
            ValueError: shapes do not fit, the mask is not contiguous, or no sequence of a sentence's length is allowed.
        """
        return _best_tags(self._chain_scores(emissions.detach(), mask))

    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The probability of each tag at each token given the whole sentence, (B, T, K), 0 in the padding.

        It has no gradient.
        """
        return posteriors(self._chain_scores(emissions.detach(), mask)).transpose(0, 1)

    def _chain_scores(self, emissions: Tensor, mask: Tensor) -> ChainScores:
        transitions = self.start_transitions, self.transitions, self.end_transitions
        return _chain_scores(emissions, mask, transitions, self.constraints)


class ConstrainedDecoder(nn.Module):
    """Finds the best of the allowed tag sequences where tags are scored one by one, without scores of pairs.

    Source: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2.2. In place of their
    search, Viterbi with transition scores of zero and minus infinity finds the best sequence.

    Arguments:
        constraints: what is allowed, of K tags.
    """

    def __init__(self, constraints: TransitionConstraints) -> None:
        super().__init__()
        self.constraints = constraints

    def best_tags(self, emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The allowed tag sequence of each sentence with the highest sum of scores.

        Arguments, results and errors are those of `ConditionalRandomField.best_tags`.
        """
        zeros = emissions.new_zeros(len(self.constraints.start))
        transitions = zeros, zeros.expand(len(zeros), -1), zeros
        return _best_tags(_chain_scores(emissions.detach(), mask, transitions, self.constraints))


def _chain_scores(
    emissions: Tensor, mask: Tensor, transitions: tuple[Tensor, Tensor, Tensor], constraints: TransitionConstraints
) -> ChainScores:
    """Checks shapes and mask; `transitions` are the scores of the first tags, of pairs and of the last tags."""
    num_tags = len(constraints.start)
    if emissions.dim() != 3 or emissions.shape[2] != num_tags or emissions.shape[:2] != mask.shape:
        raise ValueError(
            f"emissions: shape {tuple(emissions.shape)} with a mask of {tuple(mask.shape)}; "
            f"expected (B, T, {num_tags}) and (B, T)"
        )
    lengths = mask.sum(1)  # (B,)
    is_contiguous = mask == mask_of_lengths(lengths, mask.shape[1])
    if not bool(is_contiguous.all() & (lengths > 0).all()):
        raise ValueError("the mask has a gap or an empty sentence; a sentence's tokens, at least one, must come first")
    dtype = torch.float32 if emissions.device.type == "mps" else torch.float64
    start, between, end = transitions
    return ChainScores(
        emissions=emissions.transpose(0, 1).to(dtype).contiguous(),
        start=start.to(dtype).masked_fill(~constraints.start, FORBIDDEN),
        transitions=between.to(dtype).masked_fill(~constraints.between, FORBIDDEN),
        end=end.to(dtype).masked_fill(~constraints.end, FORBIDDEN),
        lengths=lengths,
    )


def _best_tags(scores: ChainScores) -> tuple[Tensor, Tensor]:
    """The best sequences (B, T) and their scores (B,); ValueError where no sequence is allowed."""
    tags, best = _viterbi(scores)
    if (best < FORBIDDEN / 2).any():
        sentence = int(torch.nonzero(best < FORBIDDEN / 2)[0])
        raise ValueError(
            f"the constraints allow no sequence of {int(scores.lengths[sentence])} tags "
            f"(the length of sentence {sentence} of the batch)"
        )
    return tags.t(), best


def _score(scores: ChainScores, tags: Tensor) -> Tensor:
    """The score, (B,), of one tag sequence a sentence; tags (T, B)."""
    tags = tags.masked_fill(~scores.is_real, 0)
    num_tags = scores.emissions.shape[2]
    emissions = scores.emissions.gather(2, tags.unsqueeze(2)).squeeze(2)  # (T, B)
    steps = scores.transitions.flatten()[tags[:-1] * num_tags + tags[1:]]  # (T - 1, B)
    inner = emissions.masked_fill(~scores.is_real, 0).sum(0) + steps.masked_fill(~scores.is_real[1:], 0).sum(0)
    return scores.start[tags[0]] + inner + scores.end[at_last_token(tags, scores.lengths)]


@torch.no_grad()
def _viterbi(scores: ChainScores) -> tuple[Tensor, Tensor]:
    """Tags (T, B), 0 in the padding, and scores (B,)."""
    value = scores.start + scores.emissions[0]  # (B, K): the best sequence up to here that ends in each tag
    values, origins = [value], []
    for emission in scores.emissions[1:]:
        value, origin = (value.unsqueeze(2) + scores.transitions).max(dim=1)  # (B, K), (B, K)
        value += emission
        values.append(value)
        origins.append(origin)
    best, tag = (at_last_token(torch.stack(values), scores.lengths) + scores.end).max(dim=1)  # (B,), (B,)

    tags = [tag]
    if origins:
        # In the padding each tag comes from itself, so that the last real one is carried to where tracing begins.
        itself = torch.arange(scores.emissions.shape[2], device=tag.device)
        origin_of = torch.where(scores.is_real[1:].unsqueeze(2), torch.stack(origins), itself)  # (T - 1, B, K)
        for origin in origin_of.flip(0):
            tag = origin.gather(1, tag.unsqueeze(1)).squeeze(1)
            tags.append(tag)
    return torch.stack(tags[::-1]).masked_fill(~scores.is_real, 0), best
