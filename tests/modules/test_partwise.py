from __future__ import annotations

import pytest
import torch

from elmo_tasks.modules.coreference import PartwiseScorer


@pytest.mark.parametrize("hidden_sizes", [(5,), (5, 3), (4, 4, 2)])
def test_scores_are_those_of_the_concatenation(hidden_sizes: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    scorer = PartwiseScorer({"a": 3, "b": 2, "c": 4}, hidden_sizes, dropout=0.5).eval()
    with torch.no_grad():
        scorer.first.bias.normal_()
    a, b, c = torch.randn(6, 3), torch.randn(2), torch.randn(6, 4)
    projected = scorer.project("c", c) + scorer.project("b", b) + scorer.project("a", a)
    concatenated = torch.cat([a, b.expand(6, 2), c], dim=1)
    hidden = torch.relu(scorer.first(concatenated))
    expected = scorer.output(scorer.rest(hidden)).squeeze(1)
    torch.testing.assert_close(scorer.score(projected), expected)


def test_training_drops_hidden_units() -> None:
    scorer = PartwiseScorer({"a": 3}, (50,), dropout=0.5)
    projected = scorer.project("a", torch.ones(3))
    assert scorer.score(projected) != scorer.score(projected)
    later = PartwiseScorer({"a": 3}, (6, 50), dropout=0.5).rest
    assert not torch.equal(later(torch.ones(6)), later(torch.ones(6)))
    scorer.eval()
    assert scorer.score(projected) == scorer.score(projected)


def test_unknown_parts_are_an_error() -> None:
    with pytest.raises(ValueError, match="'b' is not in list"):
        PartwiseScorer({"a": 3}, (2,), dropout=0.0).project("b", torch.ones(3))
