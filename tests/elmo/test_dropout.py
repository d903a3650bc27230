from __future__ import annotations

import pytest
import torch

from elmo_tasks.elmo.dropout import Dropout, dropout_factors
from elmo_tasks.modules.dropout import VariationalDropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_drops_values_independently_and_keeps_the_mean(probability: float) -> None:
    torch.manual_seed(2)
    factors = dropout_factors((301, 333), probability, torch.empty(0))
    dropped = factors == 0
    torch.testing.assert_close(factors[~dropped], torch.full_like(factors[~dropped], 1 / (1 - probability)))
    # 0.01 is more than six standard deviations, also of the joint frequencies of neighbours
    assert dropped.float().mean().item() == pytest.approx(probability, abs=0.01)
    for one, other in [(dropped[1:], dropped[:-1]), (dropped[:, 1:], dropped[:, :-1])]:
        assert (one & other).float().mean().item() == pytest.approx(probability**2, abs=0.01)


def test_draws_one_value_and_another_type() -> None:
    assert dropout_factors((1,), 0.0, torch.empty(0)).tolist() == [1.0]
    assert dropout_factors((3, 0, 5), 0.5, torch.empty(0)).shape == (3, 0, 5)
    assert dropout_factors((2, 3), 0.5, torch.empty(0, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_a_probability_next_to_one_drops_nearly_all() -> None:
    assert dropout_factors((1000,), 1 - 1e-12, torch.empty(0)).count_nonzero() == 0


def test_gradient_goes_the_way_of_the_values() -> None:
    inputs = torch.full((50, 20), 3.0, requires_grad=True)
    outputs = Dropout(0.5)(inputs)
    assert set(outputs.unique().tolist()) == {0.0, 6.0}
    outputs.sum().backward()
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad * 3, outputs)


@pytest.mark.parametrize("kind", [Dropout, VariationalDropout])
def test_follows_the_seed_and_rests_in_evaluation(kind: type[Dropout]) -> None:
    dropout, inputs = kind(0.5), torch.ones(3, 4, 20)
    torch.manual_seed(1)
    first = dropout(inputs)
    assert not torch.equal(dropout(inputs), first)
    torch.manual_seed(1)
    assert torch.equal(dropout(inputs), first)
    assert torch.equal(dropout.eval()(inputs), inputs)
    assert torch.equal(kind(0.0)(inputs), inputs)


@pytest.mark.parametrize("kind", [Dropout, VariationalDropout])
@pytest.mark.parametrize("probability", [-0.1, 1.0])
def test_refuses_what_is_not_a_probability(kind: type[Dropout], probability: float) -> None:
    with pytest.raises(ValueError, match="expected at least 0 and less than 1"):
        kind(probability)
