from __future__ import annotations

import pytest
import torch

from elmo_tasks.modules.dropout import VariationalDropout


def test_drops_the_same_features_at_every_token_and_others_in_every_sentence() -> None:
    torch.manual_seed(0)
    outputs = VariationalDropout(0.25)(torch.ones(200, 7, 50))
    dropped = outputs == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert not torch.equal(dropped[0], dropped[1])
    torch.testing.assert_close(outputs[~dropped], torch.full_like(outputs[~dropped], 4 / 3))
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.02)


def test_follows_the_seed() -> None:
    dropout, inputs = VariationalDropout(0.5), torch.ones(3, 4, 20)
    torch.manual_seed(1)
    first = dropout(inputs)
    assert not torch.equal(dropout(inputs), first)
    torch.manual_seed(1)
    assert torch.equal(dropout(inputs), first)


def test_does_nothing_in_evaluation() -> None:
    inputs = torch.randn(2, 3, 4)
    assert torch.equal(VariationalDropout(0.9).eval()(inputs), inputs)
    assert torch.equal(VariationalDropout(0.0)(inputs), inputs)
