# B batch, T tokens, K tags
import itertools

import pytest
import torch
import torchcrf
from torch import Tensor

from elmo_tasks.modules.crf import ConditionalRandomField, ConstrainedDecoder, TransitionConstraints

NUM_TAGS = 4
LENGTHS = (5, 1, 3, 4)


def make_crf(constrained: bool, scale: float = 1.0) -> ConditionalRandomField:
    constraints = None
    if constrained:
        between = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 1], [1, 1, 1, 0]]).bool()
        constraints = TransitionConstraints(
            torch.tensor([1, 1, 0, 1]).bool(), between, torch.tensor([1, 0, 1, 1]).bool()
        )
    crf = ConditionalRandomField(NUM_TAGS, constraints)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return crf.double()


def make_batch(scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Emissions, with garbage in the padding, and the mask."""
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    emissions = scale * torch.randn(*mask.shape, NUM_TAGS, dtype=torch.float64)
    return emissions.masked_fill(~mask.unsqueeze(2), 1e6), mask


@torch.no_grad()
def scored_sequences(crf: ConditionalRandomField, emissions: Tensor) -> dict[tuple[int, ...], float]:
    """The score of each allowed sequence of one sentence, emissions (T, K), one by one."""
    found = {}
    for tags in itertools.product(range(NUM_TAGS), repeat=len(emissions)):
        pairs = list(itertools.pairwise(tags))
        if not (crf.constraints.start[tags[0]] and crf.constraints.end[tags[-1]]):
            continue
        if not all(crf.constraints.between[pair] for pair in pairs):
            continue
        score = crf.start_transitions[tags[0]] + crf.end_transitions[tags[-1]]
        score = score + sum(emissions[token, tag] for token, tag in enumerate(tags))
        found[tags] = float(score + sum(crf.transitions[pair] for pair in pairs))
    return found


def best_sequences(crf: ConditionalRandomField, emissions: Tensor, mask: Tensor) -> list[list[int]]:
    """The best sequences without padding, as pytorch-crf gives them."""
    tags = crf.best_tags(emissions, mask)
    return [row[:length] for row, length in zip(tags.tolist(), mask.sum(1).tolist(), strict=True)]


def some_allowed_tags(crf: ConditionalRandomField, mask: Tensor) -> Tensor:
    tags = torch.full(mask.shape, 3)
    for row, length in enumerate(mask.sum(1).tolist()):
        allowed = list(scored_sequences(crf, torch.zeros(length, NUM_TAGS)))
        tags[row, :length] = torch.tensor(allowed[len(allowed) // 2])
    return tags


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize(("scale", "temperature"), [(0.1, 1.0), (1.0, 2.5), (8.0, 1.0)])
def test_equals_enumeration_of_all_sequences(constrained: bool, scale: float, temperature: float) -> None:
    crf = make_crf(constrained, scale)
    emissions, mask = make_batch(scale)
    tags = some_allowed_tags(crf, mask)
    likelihoods = crf.log_likelihood(emissions, tags, mask).detach()
    marginals = crf.marginals(emissions, mask, temperature)
    best = crf.best_tags(emissions, mask)
    for row, length in enumerate(LENGTHS):
        scores = scored_sequences(crf, emissions[row, :length])
        of_sequences = torch.tensor(list(scores.values()), dtype=torch.float64)
        log_sum = of_sequences.logsumexp(0)
        expected = torch.zeros_like(marginals[row])
        for sequence, share in zip(scores, (of_sequences / temperature).softmax(0), strict=True):
            expected[range(length), sequence] += share
        gold = tuple(tags[row, :length].tolist())
        torch.testing.assert_close(likelihoods[row], scores[gold] - log_sum, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(marginals[row], expected, atol=1e-9, rtol=0)
        assert tuple(best[row, :length].tolist()) == max(scores, key=lambda sequence: scores[sequence])
        assert not best[row, length:].any()


def test_equals_pytorch_crf() -> None:
    """Without constraints, values, gradients and best sequences are pytorch-crf's, at the sizes of a real tagger."""
    num_tags, (batch, steps) = 17, (8, 30)
    crf = ConditionalRandomField(num_tags)
    assert list(crf.state_dict()) == list(torchcrf.CRF(num_tags).state_dict())
    emissions = (3 * torch.randn(batch, steps, num_tags)).requires_grad_()
    tags = torch.randint(num_tags, (batch, steps))
    mask = torch.arange(steps) < torch.randint(1, steps + 1, (batch, 1))
    expected, actual = crf(emissions, tags, mask, "none"), crf.log_likelihood(emissions, tags, mask)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-4, check_dtype=False)
    variables = [emissions, *crf.parameters()]
    of_reference, of_ours = (torch.autograd.grad(each.sum(), variables) for each in (expected, actual))
    for ours, theirs in zip(of_ours, of_reference, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert best_sequences(crf, emissions, mask) == crf.decode(emissions, mask)


@pytest.mark.parametrize("scale", [100.0, 1000.0])
@pytest.mark.parametrize("constrained", [False, True])
def test_extreme_scores_stay_exact(scale: float, constrained: bool) -> None:
    """Forbidden transitions against overwhelming emissions."""
    crf = make_crf(constrained, scale)
    emissions, mask = make_batch()
    emissions = emissions.sign() * scale
    emissions.requires_grad_()
    tags = some_allowed_tags(crf, mask)
    likelihoods = crf.log_likelihood(emissions, tags, mask)
    likelihoods.sum().backward()
    marginals = crf.marginals(emissions, mask)
    for row, length in enumerate(LENGTHS):
        scores = scored_sequences(crf, emissions[row, :length].detach())
        log_sum = torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0)
        gold = scores[tuple(tags[row, :length].tolist())]
        torch.testing.assert_close(likelihoods[row].detach(), gold - log_sum, rtol=1e-9, atol=1e-7)
    torch.testing.assert_close(marginals.sum(2), mask.double())
    assert emissions.grad is not None
    assert emissions.grad.isfinite().all()
    for parameter in crf.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("padding", [-100, 99])
def test_tags_in_the_padding_may_be_any_number(padding: int) -> None:
    crf = make_crf(constrained=True)
    emissions, mask = make_batch()
    tags = some_allowed_tags(crf, mask)
    expected = crf.log_likelihood(emissions, tags.masked_fill(~mask, 0), mask)
    assert crf.log_likelihood(emissions, tags.masked_fill(~mask, padding), mask).equal(expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_emissions_of_any_precision_are_summed_in_double(dtype: torch.dtype) -> None:
    crf = make_crf(constrained=True).float()
    emissions, mask = make_batch()
    emissions = emissions.where(mask.unsqueeze(2), 0).to(dtype).requires_grad_()
    tags = some_allowed_tags(crf, mask)
    likelihood = crf.log_likelihood(emissions, tags, mask)
    expected = crf.log_likelihood(emissions.double(), tags, mask)
    torch.testing.assert_close(likelihood, expected, atol=0, rtol=0)
    likelihood.sum().backward()
    assert emissions.grad is not None
    assert emissions.grad.dtype == dtype


def test_marginals_in_inference_mode() -> None:
    crf = make_crf(constrained=True)
    emissions, mask = make_batch()
    with torch.inference_mode():
        inside = crf.marginals(emissions.clone(), mask)
    torch.testing.assert_close(inside.clone(), crf.marginals(emissions, mask))


def test_refuses_gold_tags_that_the_constraints_forbid() -> None:
    crf = make_crf(constrained=True)
    emissions, mask = make_batch()
    tags = some_allowed_tags(crf, mask)
    tags[2, 0] = 2
    with pytest.raises(ValueError, match="sentence 2 of the batch has tags that the constraints forbid"):
        crf.log_likelihood(emissions, tags, mask)


def test_refuses_a_length_for_which_nothing_is_allowed() -> None:
    never_alone = TransitionConstraints(
        torch.tensor([True, False]), torch.ones(2, 2, dtype=torch.bool), torch.tensor([False, True])
    )
    crf = ConditionalRandomField(2, never_alone)
    assert best_sequences(crf, torch.zeros(1, 2, 2), torch.ones(1, 2, dtype=torch.bool)) == [[0, 1]]
    with pytest.raises(ValueError, match="no sequence of 1 tags"):
        crf.best_tags(torch.zeros(1, 1, 2), torch.ones(1, 1, dtype=torch.bool))


@pytest.mark.parametrize(
    ("between", "end", "lengths"),
    [([[1, 1], [1, 1]], [0, 1], (3, 1)), ([[0, 0], [1, 1]], [1, 1], (1, 3))],
    ids=["never one token", "never two tokens"],
)
def test_marginals_are_numbers_where_nothing_is_allowed_and_exact_elsewhere(
    between: list[list[int]], end: list[int], lengths: tuple[int, int]
) -> None:
    """Sequences of the first length are allowed; there is none of the second one."""
    constraints = TransitionConstraints(
        torch.tensor([True, False]), torch.tensor(between).bool(), torch.tensor(end).bool()
    )
    crf = ConditionalRandomField(2, constraints).double()
    emissions, mask = torch.randn(2, 3, 2, dtype=torch.float64), torch.arange(3) < torch.tensor(lengths).unsqueeze(1)
    marginals = crf.marginals(emissions, mask)
    assert marginals.isfinite().all()
    assert not marginals[~mask].any()
    torch.testing.assert_close(marginals[:1], crf.marginals(emissions[:1], mask[:1]))


def test_refuses_wrong_shapes_gaps_and_empty_sentences() -> None:
    crf, emissions = make_crf(constrained=False), torch.zeros(1, 3, NUM_TAGS)
    mask = torch.ones(1, 3, dtype=torch.bool)
    for wrong in ([[True, False, True]], [[False, False, False]]):
        with pytest.raises(ValueError, match="mask"):
            crf.best_tags(emissions, torch.tensor(wrong))
    for shape in ((1, 3, 5), (1, 2, 4), (3, 4)):
        with pytest.raises(ValueError, match="emissions"):
            crf.best_tags(torch.zeros(shape), mask)
    with pytest.raises(ValueError, match="emissions and tags must match"):
        crf.log_likelihood(emissions, torch.zeros(1, 2, dtype=torch.int64), mask)


# The decoder of models without a random field


CONSTRAINTS = TransitionConstraints(
    torch.tensor([True, True, False]),
    torch.tensor([[True, True, False], [False, True, True], [True, True, True]]),
    torch.tensor([True, False, True]),
)


@pytest.fixture
def decoder() -> ConstrainedDecoder:
    return ConstrainedDecoder(CONSTRAINTS)


def test_the_decoder_is_a_random_field_that_has_learned_nothing_of_pairs(decoder: ConstrainedDecoder) -> None:
    field = ConditionalRandomField(3, CONSTRAINTS)
    for parameter in field.parameters():
        torch.nn.init.zeros_(parameter)
    mask = torch.arange(6) < torch.tensor([6, 4]).unsqueeze(1)
    emissions = torch.randn(2, 6, 3)
    assert torch.equal(decoder.best_tags(emissions, mask), field.best_tags(emissions, mask))


@pytest.mark.parametrize("constrained", [False, True])
def test_the_probability_of_allowed_tags_is_the_sum_over_their_sequences(constrained: bool) -> None:
    crf, (emissions, mask) = make_crf(constrained), make_batch()
    best = crf.best_tags(emissions, mask)
    allowed = torch.rand(*mask.shape, NUM_TAGS) < 0.5
    allowed.scatter_(2, best.unsqueeze(2), True)
    found = crf.log_probability(emissions, allowed, mask)
    for row, length in enumerate(mask.sum(1).tolist()):
        scores = scored_sequences(crf, emissions[row, :length])
        among = [
            score for tags, score in scores.items() if all(allowed[row, token, tag] for token, tag in enumerate(tags))
        ]
        expected = torch.tensor(among).double().logsumexp(0) - torch.tensor(list(scores.values())).double().logsumexp(0)
        assert found[row].item() == pytest.approx(expected.item(), abs=1e-5)
