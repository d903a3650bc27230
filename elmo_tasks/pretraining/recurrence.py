"""The biLM's recurrent layers in training: one layer in both directions, forward and back through time.

Autograd would keep a dozen tensors for every token and start twice as many small operations. Here a step is one product
and a few passes over the gates, and the gradients of all weights are one product for all steps of a window.

# T steps of a window, B rows of a batch, P features of one direction, H cells, Q features read: [input, output]
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_tasks.elmo.fast.threads import run_together
from elmo_tasks.elmo.lstm import LstmState, ProjectedLstm
from elmo_tasks.elmo.tanh_by_sigmoid import DoubledWeights


class _Pass:
    """One layer in one direction over one window.

    Arguments:
        weights: of the gates (4H, Q), their bias (4H,), and of the projection (P, H) or None; see `tanh_by_sigmoid`.
        clips: bounds of the doubled cells and of the projected outputs.
        keeps: (T, B, 1) 0 where a row starts from zero at a step, otherwise 1.
    """

    def __init__(self, weights: Sequence[Any], clips: tuple[float | None, float | None], keeps: Tensor | None) -> None:
        self._weight, self._bias, self._projection = weights
        self._cell_clip, self._output_clip = clips
        self._keeps = keeps

    def forward(self, inputs: Tensor, hidden: Tensor, cells: Tensor) -> Tensor:
        """(T, B, P), (B, P), (B, H) -> (T, B, P); keeps what `backward` needs, and the cells."""
        steps, rows, size = inputs.shape
        num_cells, dtype = cells.shape[1], self._weight.dtype
        self._read = inputs.new_empty(steps, rows, 2 * size, dtype=dtype)  # (T, B, Q)
        self._read[:, :, :size] = inputs
        self._gates = inputs.new_empty(steps, rows, 4 * num_cells)
        self.cells = inputs.new_empty(steps + 1, rows, num_cells)  # of each step twice the cells before it
        self._curved = inputs.new_empty(steps, rows, num_cells)  # sigmoid(2c) - 1/2: half of tanh(c)
        self._put_out = inputs.new_empty(steps, rows, num_cells, dtype=dtype)  # half the cells' outputs
        self.outputs = inputs.new_empty(steps, rows, size)
        self.cells[0] = cells
        for step in range(steps):
            self._read[step, :, size:] = self._kept(hidden, step)
            hidden = self._step_forward(step)
        return self.outputs

    def _step_forward(self, step: int) -> Tensor:
        gates, cells = self._gates[step], self.cells[step + 1]
        gates.copy_(functional.linear(self._read[step], self._weight, self._bias)).sigmoid_()
        enter, candidate, forget, leave = gates.chunk(4, dim=1)  # each (B, H)
        torch.mul(self._kept(self.cells[step], step), forget, out=cells)
        cells.addcmul_(enter, candidate - 0.5, value=4.0)
        if self._cell_clip is not None:
            cells.clamp_(-self._cell_clip, self._cell_clip)
        curved = torch.sigmoid(cells, out=self._curved[step]).sub_(0.5)
        put_out, outputs = self._put_out[step], self.outputs[step]
        put_out.copy_(curved * leave)
        if self._projection is None:
            return torch.mul(put_out, 2.0, out=outputs)
        outputs.copy_(functional.linear(put_out, self._projection))
        if self._output_clip is not None:
            outputs.clamp_(-self._output_clip, self._output_clip)
        return outputs

    def backward(self, output_gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """The gradients of inputs (T, B, P) and of the weights, from those of the outputs (T, B, P)."""
        steps, _, size = self.outputs.shape
        dtype = self._weight.dtype
        gates = torch.empty_like(self._gates, dtype=dtype)  # gradients, (T, B, 4H)
        outputs = torch.empty_like(self.outputs, dtype=dtype)  # gradients before the clip, (T, B, P)
        read = torch.empty_like(self._read, dtype=torch.promote_types(dtype, torch.float32))  # gradients, (T, B, Q)
        cells = torch.zeros_like(self.cells[0])
        hidden = torch.zeros_like(self.outputs[0])
        for step in reversed(range(steps)):
            gradient = output_gradients[step] + hidden
            if self._projection is not None and self._output_clip is not None:
                gradient *= self.outputs[step].abs() < self._output_clip
            outputs[step] = gradient
            gates[step], cells = self._step_backward(step, outputs[step], cells)
            read[step] = gates[step] @ self._weight  # (B, Q)
            hidden = self._kept(read[step, :, size:], step)
        flat_gates = gates.flatten(0, 1)
        weight = flat_gates.t() @ self._read.flatten(0, 1)  # (4H, Q)
        bias = flat_gates.sum(dim=0)
        projection = None
        if self._projection is not None:
            projection = outputs.flatten(0, 1).t() @ self._put_out.flatten(0, 1)  # (P, H)
        return read[:, :, :size], weight, bias, projection

    def _step_backward(self, step: int, outputs: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of the gates' sums (B, 4H), and of the cells before the step (B, H)."""
        put_out = 2.0 * outputs if self._projection is None else outputs @ self._projection  # (B, H)
        put_out = put_out.to(cells.dtype)
        enter, candidate, forget, leave = self._gates[step].chunk(4, dim=1)
        curved = self._curved[step]
        cells = cells.addcmul(put_out * leave, 0.25 - curved.square())
        if self._cell_clip is not None:
            cells *= self.cells[step + 1].abs() < self._cell_clip
        gates = torch.empty_like(self._gates[step])
        by_gate = gates.chunk(4, dim=1)
        torch.mul(cells, candidate - 0.5, out=by_gate[0]).mul_(4.0)
        torch.mul(cells, enter, out=by_gate[1]).mul_(4.0)
        torch.mul(cells, self._kept(self.cells[step], step), out=by_gate[2])
        torch.mul(put_out, curved, out=by_gate[3])
        return torch.ops.aten.sigmoid_backward(gates, self._gates[step]), self._kept(cells.mul_(forget), step)

    def _kept(self, state: Tensor, step: int) -> Tensor:
        """A state, or its gradient, as it comes into a step: 0 in the rows that start anew."""
        return state if self._keeps is None else state * self._keeps[step]


class _BothDirections(torch.autograd.Function):
    """Two passes side by side; of each: inputs, hidden, cells, gates' weights, bias and projection."""

    @staticmethod
    def forward(
        ctx: Any, clips: tuple[float | None, float | None], keeps: Tensor | None, *tensors: Any
    ) -> tuple[Tensor, ...]:
        passes, tasks = [], []
        for each in (tensors[:6], tensors[6:]):
            passes.append(_Pass(each[3:], clips, keeps))
            tasks.append(functools.partial(passes[-1].forward, *each[:3]))
        # Detached: a pass that held its own result would never be freed.
        outputs = [output.detach() for output in run_together(tasks, tasks[0].args[0].device)]
        cells_after = [each.cells[-1].clone() for each in passes]
        ctx.passes = passes
        ctx.mark_non_differentiable(*cells_after)
        return *outputs, *cells_after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, forward: Tensor, backward: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        tasks = [
            functools.partial(each.backward, gradients)
            for each, gradients in zip(ctx.passes, (forward, backward), strict=True)
        ]
        ctx.passes = None
        gradients: list[Tensor | None] = [None, None]
        for inputs, weight, bias, projection in run_together(tasks, forward.device):
            gradients += [inputs, None, None, weight, bias, projection]
        return tuple(gradients)


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
    keeps = None if resets is None else (~resets)[:, :, None].to(inputs[0].dtype)
    arguments: list[Tensor | None] = []
    for lstm, read, (hidden, cells) in zip(lstms, inputs, states, strict=True):
        weights = DoubledWeights.of(lstm)
        gates = torch.cat([weights.inputs, weights.recurrent], dim=1).to(dtype)
        projection = None if weights.projection is None else weights.projection.to(dtype)
        arguments += [read, hidden, 2.0 * cells, gates, weights.bias.to(dtype), projection]
    clips = weights.cell_clip, lstms[0].projection_clip
    *outputs, forward_cells, backward_cells = _BothDirections.apply(clips, keeps, *arguments)
    forward, backward = outputs
    return (forward, backward), (
        (forward[-1].detach(), 0.5 * forward_cells),
        (backward[-1].detach(), 0.5 * backward_cells),
    )
