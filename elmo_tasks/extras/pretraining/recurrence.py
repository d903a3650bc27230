"""The biLM's recurrent layers in training: one layer in both directions, forward and back through time.

The reference is `ProjectedLstm` of `elmo/lstm.py` with autograd. Forward and backward of a layer are 1.4 times as fast
in bfloat16 and 1.1 times in float32 (512 cells, 32 streams of 20 tokens, one core; 1.15 and 1.0 times with 1,024 cells
and 64 streams); `python -m benchmarks.pretraining_step` measures whole steps. Rows can start anew within a window.

Autograd would keep a dozen tensors for every token and start twice as many small operations. Here a step is one product
and a few passes over the gates, for both directions in the same operations, so that few of them are started and each is
large enough for several threads. The gradients of all weights are one product for all steps of a window.

# T steps of a window, D = 2 directions, B rows of a batch, P features of one direction, H cells, Q features read:
# [input, output]
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_tasks.elmo.lstm import DoubledWeights, LstmState, ProjectedLstm
from elmo_tasks.extras.pretraining.softmax import fused


class _Pass:
    """One layer over one window, in both directions; what only `backward` needs is kept if it `trains`.

    Weights of the gates (D, 4H, Q), their biases (D, 1, 4H) and projections (D, P, H) or None are as `DoubledWeights`
    has them. `clips` bound the doubled cells and the projected outputs. `keeps`, (T, B, 1), is 0 where a row starts
    from zero at a step, otherwise 1.
    """

    def __init__(
        self,
        weights: tuple[Tensor, Tensor, Tensor | None],
        clips: tuple[float | None, float | None],
        keeps: Tensor,
        *,
        trains: bool,
    ) -> None:
        self._weight, self._bias, self._projection = weights
        self._cell_clip, self._output_clip = clips
        self._keeps, self._trains = keeps, trains
        # In evaluations windows have many shapes: each would be compiled anew.
        compiles = trains and self._weight.is_cuda
        self._forward_cells = fused(_forward_cells) if compiles else _forward_cells
        self._backward_cells = fused(_backward_cells) if compiles else _backward_cells

    def forward(self, inputs: Tensor, hidden: Tensor, cells: Tensor) -> Tensor:
        """(T, D, B, P), (D, B, P), (D, B, H) -> (T, D, B, P); keeps what `backward` needs, and the last cells."""
        *shape, size = inputs.shape
        dtype = self._weight.dtype
        self._read = inputs.new_empty(*shape, 2 * size, dtype=dtype)  # (T, D, B, Q)
        self._read[..., :size] = inputs
        self._cell_outputs = inputs.new_empty(*shape, cells.shape[-1], dtype=dtype)  # halved
        self.outputs = torch.empty_like(inputs)
        # One tensor for each step: larger ones would be given back to the system, and each window would need new pages.
        self._gates: list[Tensor] = []  # (D, B, 4H)
        self.cells = [cells]  # (D, B, H) twice the cells before each step, and after the last one
        self._cell_curves: list[Tensor] = []  # (D, B, H) sigmoid(2c) - 1/2: half of tanh(c)
        for step in range(len(inputs)):
            keep = self._keeps[step]
            torch.mul(hidden, keep, out=self._read[step, ..., size:])
            sums = torch.baddbmm(self._bias, self._read[step], self._weight.transpose(1, 2))
            hidden, cell_outputs = self.outputs[step], self._cell_outputs[step]
            gates, cells, curve = self._forward_cells(sums, self.cells[-1], keep, self._cell_clip, cell_outputs)
            if self._trains:
                self._gates.append(gates)
                self.cells.append(cells)
                self._cell_curves.append(curve)
            else:
                self.cells = [cells]
            if self._projection is None:
                torch.mul(cell_outputs, 2.0, out=hidden)
            else:
                projected = torch.bmm(cell_outputs, self._projection.transpose(1, 2))
                if self._output_clip is not None:
                    projected.clamp_(-self._output_clip, self._output_clip)
                hidden.copy_(projected)
        return self.outputs

    def backward(self, output_gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """The gradients of inputs (T, D, B, P) and of the weights, from those of the outputs (T, D, B, P)."""
        steps, _, _, size = self.outputs.shape
        dtype = self._weight.dtype
        num_directions, rows, num_gates = self._gates[0].shape
        gates = self.outputs.new_empty(num_directions, steps, rows, num_gates, dtype=dtype)  # gradients
        outputs = torch.empty_like(self.outputs, dtype=dtype)  # gradients before the clip, (T, D, B, P)
        read = torch.empty_like(self._read, dtype=torch.promote_types(dtype, torch.float32))  # gradients
        cells = torch.zeros_like(self.cells[0])
        hidden = torch.zeros_like(self.outputs[0])
        for step in reversed(range(steps)):
            gradient = output_gradients[step] + hidden
            if self._projection is not None:
                gradient = _through_clip(gradient, self.outputs[step], self._output_clip)
            outputs[step] = gradient
            if self._projection is None:
                cell_outputs = 2.0 * outputs[step]
            else:
                cell_outputs = torch.bmm(outputs[step], self._projection)  # (D, B, H)
            keep = self._keeps[step]
            kept = self._gates[step], self.cells[step], self.cells[step + 1], self._cell_curves[step]
            cells = self._backward_cells(cell_outputs, cells, *kept, keep, self._cell_clip, gates[:, step])
            read[step] = torch.bmm(gates[:, step], self._weight)  # (D, B, Q)
            torch.mul(read[step, ..., size:], keep, out=hidden)
        by_direction = gates.flatten(1, 2)  # (D, T B, 4H)
        bias = torch.stack([each.sum(dim=0, keepdim=True) for each in by_direction])  # (D, 1, 4H)
        weight = _sums_of_products(gates, self._read)  # (D, 4H, Q)
        projection = None
        if self._projection is not None:
            projection = _sums_of_products(outputs.transpose(0, 1), self._cell_outputs)  # (D, P, H)
        return read[..., :size], weight, bias, projection


def _forward_cells(
    sums: Tensor, cells: Tensor, keep: Tensor, clip: float | None, outputs: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gates' sums (D, B, 4H), cells before a step (D, B, H) -> gates, cells after it, half of their tanh.

    Sets `outputs` (D, B, H) to half of the cells' outputs.
    """
    gates = sums.to(cells.dtype).sigmoid_()
    enter, candidate, forget, leave = gates.chunk(4, dim=-1)  # each (D, B, H)
    cells = cells * keep * forget
    cells.addcmul_(enter, candidate - 0.5, value=4.0)
    if clip is not None:
        cells.clamp_(-clip, clip)
    curve = torch.sigmoid(cells).sub_(0.5)
    outputs.copy_(curve * leave)
    return gates, cells, curve


def _backward_cells(
    outputs: Tensor,
    cells: Tensor,
    gates: Tensor,
    before: Tensor,
    after: Tensor,
    curve: Tensor,
    keep: Tensor,
    clip: float | None,
    of_sums: Tensor,
) -> Tensor:
    """The gradient of the cells before a step (D, B, H); sets `of_sums`, that of the gates' sums (D, B, 4H).

    `outputs` and `cells` are the gradients of the halved cells' outputs, and of the cells after the step.
    """
    outputs = outputs.to(cells.dtype)
    enter, candidate, forget, leave = gates.chunk(4, dim=-1)
    cells = _through_clip(cells.addcmul(outputs * leave, 0.25 - curve.square()), after, clip)
    before = before * keep
    fourfold = 4.0 * cells
    of_gates = [fourfold * (candidate - 0.5), fourfold * enter, cells * before, outputs * curve]
    of_sums.copy_(torch.ops.aten.sigmoid_backward(torch.cat(of_gates, dim=-1), gates))
    return cells * forget * keep


def _through_clip(gradient: Tensor, clipped: Tensor, bound: float | None) -> Tensor:
    """The gradient before a clip, from that after it and from the clipped values: 0 where the clip bit."""
    return gradient if bound is None else torch.ops.aten.hardtanh_backward(gradient, clipped, -bound, bound)


def _sums_of_products(gradients: Tensor, factors: Tensor) -> Tensor:
    """(D, T, B, M), (T, D, B, N) -> (D, M, N)"""
    pairs = zip(gradients, factors.unbind(1), strict=True)
    return torch.stack([gradient.flatten(0, 1).t() @ factor.flatten(0, 1) for gradient, factor in pairs])


class _Layer(torch.autograd.Function):
    """Inputs (T, D, B, P), outputs and cells before them, the gates' weights and biases, projections."""

    @staticmethod
    def forward(
        ctx: Any,
        clips: tuple[float | None, float | None],
        keeps: Tensor,
        inputs: Tensor,
        hidden: Tensor,
        cells: Tensor,
        *weights: Any,
    ) -> tuple[Tensor, Tensor]:
        ctx.window = _Pass(weights, clips, keeps, trains=any(ctx.needs_input_grad))
        # Detached: a pass that held its own result would never be freed.
        outputs = ctx.window.forward(inputs, hidden, cells).detach()
        cells_after = ctx.window.cells[-1].clone()
        ctx.mark_non_differentiable(cells_after)
        return outputs, cells_after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        inputs, *weights = ctx.window.backward(gradients)
        ctx.window = None
        return None, None, inputs, None, None, *weights


def run_layer(
    lstms: tuple[ProjectedLstm, ProjectedLstm],
    inputs: tuple[Tensor, Tensor],
    states: tuple[LstmState, LstmState],
    dtype: torch.dtype,
    resets: Tensor | None = None,
) -> tuple[tuple[Tensor, Tensor], tuple[LstmState, LstmState]]:
    """One layer in both directions over a window, as `ProjectedLstm` computes it; no gradient flows into the states.

    Arguments:
        lstms: the layer's forward and backward LSTM.
        inputs: of each of them, (T, B, P), in the order in which it reads.
        states: where each of them starts, (B, P) and (B, H).
        dtype: of the products' factors, torch.bfloat16 or that of the weights.
        resets: (T, B) bool, True where both directions of a row start from zeros.

    Returns:
        of each direction the outputs (T, B, P), and the state after the last step.
    """
    is_reset = torch.zeros_like(inputs[0][..., 0], dtype=torch.bool) if resets is None else resets
    keeps = (~is_reset)[:, :, None].to(inputs[0].dtype)
    each = [DoubledWeights.of(lstm) for lstm in lstms]
    gates = torch.stack([torch.cat([weights.inputs, weights.recurrent], dim=1) for weights in each]).to(dtype)
    biases = torch.stack([weights.bias for weights in each])[:, None].to(dtype)
    projections = [weights.projection for weights in each if weights.projection is not None]
    projection = torch.stack(projections).to(dtype) if projections else None
    hidden, cells = (torch.stack(parts) for parts in zip(*states, strict=True))
    clips = each[0].cell_clip, lstms[0].projection_clip
    outputs, cells_after = _Layer.apply(
        clips, keeps, torch.stack(inputs, dim=1), hidden, 2.0 * cells, gates, biases, projection
    )
    forward, backward = outputs.unbind(1)
    hidden_after, cells_after = outputs[-1].detach(), 0.5 * cells_after
    return (forward, backward), ((hidden_after[0], cells_after[0]), (hidden_after[1], cells_after[1]))
