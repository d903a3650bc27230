from __future__ import annotations

import pytest
import torch

from elmo_tasks.modules.crf import ConditionalRandomField, ConstrainedDecoder, TransitionConstraints

START = torch.tensor([True, True, False])
BETWEEN = torch.tensor([[True, True, False], [False, True, True], [True, True, True]])
END = torch.tensor([True, False, True])


@pytest.fixture
def decoder() -> ConstrainedDecoder:
    torch.manual_seed(2)
    return ConstrainedDecoder(TransitionConstraints(START, BETWEEN, END))


def test_is_a_random_field_that_has_learned_nothing_of_pairs(decoder: ConstrainedDecoder) -> None:
    field = ConditionalRandomField(3, TransitionConstraints(START, BETWEEN, END))
    for parameter in field.parameters():
        torch.nn.init.zeros_(parameter)
    mask = torch.arange(6) < torch.tensor([6, 4]).unsqueeze(1)
    emissions = torch.randn(2, 6, 3)
    for ours, expected in zip(decoder.best_tags(emissions, mask), field.best_tags(emissions, mask), strict=True):
        assert torch.equal(ours, expected)


def test_has_nothing_to_save(decoder: ConstrainedDecoder) -> None:
    assert decoder.state_dict() == {}
    assert list(decoder.parameters()) == []


def test_errors(decoder: ConstrainedDecoder) -> None:
    mask = torch.ones(1, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"expected \(B, T, 3\)"):
        decoder.best_tags(torch.zeros(1, 2, 4), mask)
    with pytest.raises(ValueError, match="a gap or an empty sentence"):
        decoder.best_tags(torch.zeros(1, 2, 3), ~mask)
    nothing = ConstrainedDecoder(TransitionConstraints(START, BETWEEN, torch.zeros(3, dtype=torch.bool)))
    with pytest.raises(ValueError, match="allow no sequence of 2 tags"):
        nothing.best_tags(torch.zeros(1, 2, 3), mask)
