from __future__ import annotations

import torch

from elmo_tasks.elmo.lstm import LstmStack, ProjectedLstm
from elmo_tasks.elmo.options import LstmOptions


def test_skip_connections_carry_on_what_dropout_has_left() -> None:
    torch.manual_seed(5)
    options = LstmOptions(
        dim=32, projection_dim=16, n_layers=2, cell_clip=3.0, proj_clip=3.0, use_skip_connections=True
    )
    stack = LstmStack(options, dropout=0.5)
    with torch.no_grad():
        for parameter in stack.layers[1].parameters():
            parameter.zero_()  # so that only the skip connection is left of the layer
    (first, second), _ = stack(torch.randn(6, 16), [2, 2, 2], stack.initial_states(2))
    kept = second != 0
    assert 0.2 < kept.double().mean() < 0.8
    torch.testing.assert_close(second, torch.where(kept, 2 * first, 0.0))
    (first, second), _ = stack.eval()(torch.randn(6, 16), [2, 2, 2], stack.initial_states(2))
    assert second.equal(first)


def test_new_weights_are_uniform_as_in_torch() -> None:
    lstm = ProjectedLstm(LstmOptions(dim=64, projection_dim=16, n_layers=1))
    for name, parameter in lstm.named_parameters():
        largest = 0.0 if name == "bias" else 1 / 8  # one over the root of the cells
        for values in (parameter, -parameter):
            assert 0.95 * largest <= values.max() <= largest, name
