from __future__ import annotations

from elmo_tasks.elmo.lstm import ProjectedLstm
from elmo_tasks.elmo.options import LstmOptions


def test_new_weights_are_uniform_as_in_torch() -> None:
    lstm = ProjectedLstm(LstmOptions(dim=64, projection_dim=16, n_layers=1))
    for name, parameter in lstm.named_parameters():
        largest = 0.0 if name == "bias" else 1 / 8  # one over the root of the cells
        for values in (parameter, -parameter):
            assert 0.95 * largest <= values.max() <= largest, name
