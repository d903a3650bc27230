"""Muon: momentum, orthogonalized, for matrices; Adam for all other parameters.

Source: Jordan et al. (2024), "Muon: An optimizer for hidden layers in neural networks". torch.optim.Muon takes only
whole matrices, one at a time, and no other parameters. Here parts of a parameter, such as an LSTM's four gates, can be
matrices of their own, and all matrices of one shape are orthogonalized together.

# N matrices, M rows, K columns
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.errors import ConfigError
from elmo_tasks.training.optimizers import Fraction, OptimizerConfig, ParameterGroup, Rate

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the polynomial whose repetition moves all singular values near 1
_ITERATIONS = 5


class MuonWithAdam(torch.optim.Adam):
    """Adam, except for the groups with `blocks`, whose parameters are matrices and are updated by Muon.

    A group's `blocks` is the number of matrices, one above the other, of each of its parameters; 0 means Adam. A
    matrix (M, K) moves by lr x sqrt(max(1, M / K)) along its orthogonalized momentum (Nesterov's). The weight decay of
    matrices is decoupled, as in AdamW.

    Arguments:
        momentum: of the matrices.
        settings: those of torch.optim.Adam.
    """

    def __init__(self, groups: list[dict[str, Any]], *, momentum: float = 0.95, **settings: Any) -> None:
        super().__init__(groups, **settings)
        self.defaults |= {"momentum": momentum, "blocks": 0}
        for group in self.param_groups:
            group.setdefault("momentum", momentum)
            group.setdefault("blocks", 0)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Updates all parameters; the gradients of matrices are used up."""
        for group in self.param_groups:
            if group["blocks"]:
                self._step_of_matrices(group)
        return super().step(closure)  # which leaves out parameters without a gradient

    def _step_of_matrices(self, group: dict[str, Any]) -> None:
        by_shape = defaultdict(list)
        for parameter in group["params"]:
            if parameter.grad is not None:
                state = self.state[parameter]
                if not state:
                    state["step"] = torch.zeros(())  # Adam wants it in each parameter's state
                    state["momentum_buffer"] = torch.zeros_like(parameter)
                state["step"] += 1
                average = state["momentum_buffer"].lerp_(parameter.grad, 1 - group["momentum"])
                update = torch.lerp(parameter.grad, average, group["momentum"])  # Nesterov's
                blocks = update.unflatten(0, (group["blocks"], -1))  # (blocks, M, K)
                by_shape[blocks.shape].append((parameter, blocks))
                parameter.grad = None
        for (_, rows, columns), pairs in by_shape.items():
            size = group["lr"] * max(1.0, rows / columns) ** 0.5
            directions = orthogonalized(torch.cat([blocks for _, blocks in pairs]))
            for (parameter, _), direction in zip(pairs, directions.split(group["blocks"]), strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(direction.reshape(parameter.shape), alpha=-size)


def orthogonalized(matrices: Tensor) -> Tensor:
    """Nearly orthogonal matrices with the same singular vectors: the singular values are between about 0.7 and 1.2.

    (N, M, K) -> (N, M, K) in bfloat16, by Newton-Schulz iterations, whose errors are smaller than that spread.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    values = matrices.transpose(1, 2) if is_tall else matrices
    values = (values / (torch.linalg.matrix_norm(values)[:, None, None] + 1e-7)).bfloat16()
    linear, cubic, quintic = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        square = values @ values.transpose(1, 2)
        values = torch.baddbmm(
            values, torch.baddbmm(square, square, square, beta=cubic, alpha=quintic), values, beta=linear
        )
    return values.transpose(1, 2) if is_tall else values


class MuonGroup(ParameterGroup):
    """Settings for some parameters; with `blocks` they are matrices, and Muon updates them."""

    blocks: Annotated[int, Field(ge=0)] = Field(
        0,
        description="matrices of each parameter, one above the other: 1, or 4 for an LSTM's gates; 0: Adam updates it",
    )

    def check(self, parameters: Mapping[str, torch.nn.Parameter], key: str) -> None:
        for name, parameter in parameters.items() if self.blocks else ():
            if parameter.ndim != 2:
                raise ConfigError(f"{key}: {name} has the shape {tuple(parameter.shape)}; expected a matrix")
            if len(parameter) % self.blocks:
                raise ConfigError(
                    f"{key}: {name} has {len(parameter)} rows; expected a multiple of its {self.blocks} blocks"
                )


class Muon(OptimizerConfig):
    """Muon for the parameter groups with `blocks`, and Adam for all other parameters; see `MuonWithAdam`."""

    torch_class = MuonWithAdam
    type: Literal["muon"] = "muon"
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Rate = 1e-8
    momentum: Fraction = Field(0.95, description="of the matrices")
    parameter_groups: tuple[MuonGroup, ...] = Field((), description="which parameters are matrices, and other settings")
