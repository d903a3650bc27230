"""LSTM steps that compute every tanh with a sigmoid, and the weights that they need.

torch's vectorized sigmoid is about six times as fast as its tanh, and tanh(x) = 2 sigmoid(2x) - 1. The factors of 2 are
put into the weights beforehand, so that a step has no additional operation. They are powers of two: nothing is rounded.

- The candidate: its weights and its bias are doubled. With s = sigmoid(2a), tanh(a) = 2 (s - 1/2).
- The cells: their double C = 2c is kept, and clips of cells are doubled. c' = f c + i tanh(a) becomes
  C' = f C + 4 i (s - 1/2).
- The cells' output: with q = sigmoid(C) - 1/2, tanh(c) = 2q. Steps compute q, and what multiplies it next, such as
  the projection's weights, is doubled.
- Gradients: dq/dC = sigmoid(C) (1 - sigmoid(C)) = (1/2 + q) (1/2 - q) = 1/4 - q^2.

# H cells, P features; gates in the order: enter, candidate, forget, leave
"""

from __future__ import annotations

import dataclasses

from torch import Tensor

from elmo_tasks.elmo.lstm import ProjectedLstm


def gate_factors(bias: Tensor) -> Tensor:
    """What weights and biases are multiplied with, as large as `bias`: 2 for the candidate, 1 for the other gates."""
    factors = bias.new_ones(4, len(bias) // 4)
    factors[1] = 2.0
    return factors.flatten()


@dataclasses.dataclass(frozen=True)
class DoubledWeights:
    """A `ProjectedLstm`'s weights for such steps. The constant 1 of the forget gate is added to its bias."""

    inputs: Tensor  # (4H, P)
    recurrent: Tensor  # (4H, P)
    bias: Tensor  # (4H,)
    projection: Tensor | None  # (P, H)
    cell_clip: float | None

    @classmethod
    def of(cls, lstm: ProjectedLstm) -> DoubledWeights:
        factors = gate_factors(lstm.bias)
        shifts = lstm.bias.new_zeros(4, len(lstm.bias) // 4)
        shifts[2] = 1.0
        return cls(
            inputs=lstm.input_weight * factors[:, None],
            recurrent=lstm.recurrent_weight * factors[:, None],
            bias=lstm.bias * factors + shifts.flatten(),
            projection=None if lstm.projection_weight is None else 2.0 * lstm.projection_weight,
            cell_clip=None if lstm.cell_clip is None else 2.0 * lstm.cell_clip,
        )
