from __future__ import annotations

import pytest
import torch

from elmo_tasks.modules.dropout import VariationalDropout


def test_drops_the_same_features_at_every_token_and_others_in_every_sentence() -> None:
    outputs = VariationalDropout(0.25)(torch.ones(200, 7, 50))
    dropped = outputs == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert not torch.equal(dropped[0], dropped[1])
    torch.testing.assert_close(outputs[~dropped], torch.full_like(outputs[~dropped], 4 / 3))
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.02)
