"""LSTM layers in alternating directions with highway connections, fast to train on the CPU too.

The reference is the plain loop of `benchmarks/alternating_lstm.py`, which computes the equations of `HighwayLstm` one
token after the other; the tests have them too. A training step is 1.1 times as fast (4 layers of 128, 32 sentences of
20 tokens, float32, one core; the same benchmark), and keeps a small part of the tensors that autograd keeps.

torch's own LSTMs have no highway connections, and autograd through a plain loop needs a dozen small operations and
tensors per token. Here a layer computes one product for the inputs of all time steps. Each step then needs one more
product and a few passes over the gates. The backward pass computes the slopes of all gates for all steps at once, so
that each step needs one product and five passes. The gradients of the weights are two products for all steps.

# B batch, T time steps (tokens), D features of the input, H units; gates in the order: enter, candidate, forget, leave,
# carry (the highway's)
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_tasks.elmo.dropout import dropout_factors
from elmo_tasks.elmo.tanh_by_sigmoid import gate_factors
from elmo_tasks.modules.bidirectional import reordered, reversal
from elmo_tasks.modules.encoders import Encoder, EncoderConfig

_GATES = 5


class _HighwayConfig(EncoderConfig):
    dropout: Annotated[
        float,
        Field(
            ge=0, lt=1, description="variational dropout on the state and output of each layer, the highest included"
        ),
    ] = 0.0
    highway_bias: Annotated[
        bool, Field(description="adds a bias to the highway's part of the output, as some models of AllenNLP have it")
    ] = False


class AlternatingLstmConfig(_HighwayConfig):
    """LSTM layers with highway connections, the first reading forward, the second backward, and so on."""

    type: Literal["alternating_lstm"] = "alternating_lstm"
    hidden_size: Annotated[PositiveInt, Field(description="units of each layer")] = 300
    num_layers: Annotated[PositiveInt, Field(description="layers of both directions together")] = 8

    def build(self, input_size: int) -> AlternatingLstm:
        return AlternatingLstm(input_size, self.hidden_size, self.num_layers, self.dropout, self.highway_bias)


class StackedHighwayBiLstmConfig(_HighwayConfig):
    """Bidirectional LSTMs with highway connections, one on top of the other."""

    type: Literal["stacked_highway_bilstm"] = "stacked_highway_bilstm"
    hidden_size: Annotated[PositiveInt, Field(description="units of one direction of each layer")] = 200
    num_layers: Annotated[PositiveInt, Field(description="layers of two directions")] = 2

    def build(self, input_size: int) -> StackedHighwayBiLstm:
        return StackedHighwayBiLstm(input_size, self.hidden_size, self.num_layers, self.dropout, self.highway_bias)


class AlternatingLstm(Encoder):
    """A stack of `HighwayLstm` layers; the first reads each sentence from its beginning, the second from its end.

    Source: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2.1; the alternating
    directions after Zhou and Xu (2015).

    Arguments:
        input_size: D.
        hidden_size: H, also the size of the output.
        num_layers: how many layers.
        dropout: probability of variational dropout on the state and output of each layer.
        highway_bias: see `HighwayLstm`.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int, dropout: float = 0.0, highway_bias: bool = False
    ) -> None:
        super().__init__()
        sizes = [input_size, *[hidden_size] * (num_layers - 1)]
        self.layers = nn.ModuleList(HighwayLstm(size, hidden_size, dropout, highway_bias) for size in sizes)
        self.output_size = hidden_size

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        order = _reversed_order(mask)  # (T * B,)
        values = inputs.transpose(0, 1)  # (T, B, D)
        for number, layer in enumerate(self.layers):
            if number > 0:  # every layer reads in the direction opposite to the one before
                values = reordered(values, order)
            values = layer(values)  # (T, B, H)
        if len(self.layers) % 2 == 0:
            values = reordered(values, order)
        return values.transpose(0, 1).masked_fill(~mask.unsqueeze(2), 0)  # (B, T, H)


class StackedHighwayBiLstm(Encoder):
    """A stack of bidirectional layers, each of two `HighwayLstm`, one of which reads each sentence from its end.

    Source: AllenNLP's `StackedBidirectionalLstm`, the encoder of its fine-grained named entity recognizer. Dropout is
    that of `HighwayLstm`; AllenNLP drops only what goes back into a layer, and its default drops nothing.

    Arguments:
        input_size: D.
        hidden_size: units of one direction; H is twice as much.
        num_layers: how many layers of two directions.
        dropout: probability of variational dropout on the state and output of each layer.
        highway_bias: see `HighwayLstm`.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int, dropout: float = 0.0, highway_bias: bool = False
    ) -> None:
        super().__init__()
        self.output_size = 2 * hidden_size
        sizes = [input_size, *[self.output_size] * (num_layers - 1)]
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(HighwayLstm(size, hidden_size, dropout, highway_bias) for size in sizes) for _ in range(2)
        )

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        order = _reversed_order(mask)  # (T * B,)
        values = inputs.transpose(0, 1)  # (T, B, D)
        for forward, backward in zip(self.forward_layers, self.backward_layers, strict=True):
            read = reordered(backward(reordered(values, order)), order)
            values = torch.cat([forward(values), read], dim=2)  # (T, B, H)
        return values.transpose(0, 1).masked_fill(~mask.unsqueeze(2), 0)  # (B, T, H)


def _reversed_order(mask: Tensor) -> Tensor:
    """(T * B,): the rows of (T, B) in the order in which each sentence is read from its end; see `reordered`."""
    num_sentences, num_tokens = mask.shape
    positions = reversal(mask.sum(1), num_tokens)  # (T, B)
    return (positions * num_sentences + torch.arange(num_sentences, device=mask.device)).flatten()


class HighwayLstm(nn.Module):
    """One LSTM layer with a highway connection, from the first time step to the last.

    With the gates i, f, o and r, the candidate g, and x and h read at the time t (He et al. 2017, section 2.1, after
    Zhang et al. 2016, "Highway Long Short-Term Memory RNNs for Distant Speech Recognition"):

        i, f, o, r = sigmoid(W x_t + U h_(t-1) + b),  g = tanh(W x_t + U h_(t-1) + b)
        c_t = f c_(t-1) + i g
        h_t = z (r o tanh(c_t) + (1 - r) (W_h x_t + b_h))

    b_h, the bias of the highway, is not in the source and only there on request.

    z is the variational dropout of Gal and Ghahramani (2016): 0 or 1 / (1 - p) for each unit, drawn once per sentence.
    It acts on both the layer's output and its state. As in the source, weights start orthogonal for each gate, and
    biases at zero, except those of f, which start at one.

    Under autocast the products and the output have autocast's type. States have at least single precision.

    Arguments:
        input_size: D.
        hidden_size: H.
        dropout: p.
        highway_bias: whether there is a b_h.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float = 0.0, highway_bias: bool = False) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_weight = nn.Parameter(torch.empty((_GATES + 1) * hidden_size, input_size))  # W, then W_h
        self.recurrent_weight = nn.Parameter(torch.empty(_GATES * hidden_size, hidden_size))  # U
        self.bias = nn.Parameter(torch.zeros(_GATES * hidden_size))
        self.highway_bias = nn.Parameter(torch.zeros(hidden_size)) if highway_bias else None
        with torch.no_grad():
            for block in (*self.input_weight.split(hidden_size), *self.recurrent_weight.split(hidden_size)):
                nn.init.orthogonal_(block)
            self.bias.chunk(_GATES)[2].fill_(1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """(T, B, D) -> (T, B, H); a time step depends only on those before it."""
        device = inputs.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else inputs.dtype
        state_dtype = torch.promote_types(dtype, torch.float32)
        hidden_size = self.recurrent_weight.shape[1]
        # See `tanh_by_sigmoid`: the cells' output is halved; so is the highway, and dropout's factors are doubled.
        gate_scales = gate_factors(self.bias, _GATES)  # (5H,)
        scales = torch.cat([gate_scales, gate_scales.new_full((hidden_size,), 0.5)])  # (6H,)
        size = inputs.shape[1], hidden_size
        factors = inputs.new_full(size, 2.0, dtype=state_dtype)  # (B, H)
        if self.training and self.dropout > 0:
            factors *= dropout_factors(size, self.dropout, factors)
        bias = functional.pad(self.bias * gate_scales, (0, hidden_size))  # (6H,)
        if self.highway_bias is not None:
            bias = torch.cat([self.bias, self.highway_bias]) * scales
        with torch.autocast(device, enabled=False):
            outputs: Tensor = _Layer.apply(
                inputs.to(dtype),
                (self.input_weight * scales.unsqueeze(1)).to(dtype),
                (self.recurrent_weight * gate_scales.unsqueeze(1)).to(dtype),
                bias.to(dtype),
                factors,
            )
        return outputs


class _Layer(torch.autograd.Function):
    """A layer with the scaled weights of `HighwayLstm`; factors (B, H) are twice those of the dropout."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, input_weight: Tensor, recurrent_weight: Tensor, bias: Tensor, factors: Tensor
    ) -> Tensor:
        steps, rows, _ = inputs.shape
        size = recurrent_weight.shape[1]
        projected = functional.linear(inputs, input_weight, bias)  # (T, B, 6H)
        starts, carried = projected.split([_GATES * size, size], dim=2)
        gates = starts if projected.dtype == factors.dtype else torch.empty_like(starts, dtype=factors.dtype)
        cells = factors.new_zeros(steps + 1, rows, size)  # twice the cells, before the first step and after each
        curves = factors.new_empty(steps, rows, size)  # sigmoid(2c) - 1/2: half of tanh(c)
        outputs = inputs.new_zeros(steps + 1, rows, size)
        carried = carried.to(factors.dtype)
        _run_forward_steps(starts, carried, recurrent_weight.t(), factors, gates, cells, curves, outputs)
        ctx.save_for_backward(inputs, input_weight, recurrent_weight, factors, carried, gates, cells, curves, outputs)
        return outputs[1:].detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, input_weight, recurrent_weight, factors, carried, gates, cells, curves, outputs = ctx.saved_tensors
        steps, rows, size = gradients.shape
        states = gradients * factors  # (T, B, H), gradients of the halved outputs, without those from later steps
        sums = factors.new_empty(steps, rows, (_GATES + 1) * size)  # become the gradients of `projected`
        slopes = sums[:, :, : _GATES * size]
        cell_slopes = _fill_slopes(slopes, gates, cells, curves, carried)
        forget, carry = gates[:, :, 2 * size : 3 * size], gates[:, :, 4 * size :]
        _run_backward_steps(states, slopes, cell_slopes, forget, recurrent_weight, factors)
        sums[:, :, _GATES * size :] = states.addcmul_(states, carry, value=-1)
        flat = sums.flatten(0, 1).to(inputs.dtype)  # (T * B, 6H)
        recurrent = flat[rows:, : _GATES * size], outputs[1:-1].flatten(0, 1)  # the first step begins at zero
        return (
            _product(flat, input_weight).view(inputs.shape),
            _product(flat.t(), inputs.flatten(0, 1)),
            _product(recurrent[0].t(), recurrent[1]),
            flat.sum(dim=0),
            None,
        )


def _product(one: Tensor, other: Tensor) -> Tensor:
    """The product of two matrices; in single precision on the CPU, the transposed product of the transposed matrices.

    Where the first matrix is the larger one, CPU libraries need half as much time again to compute it directly.
    """
    if one.dtype != torch.float32 or one.device.type != "cpu":
        return one @ other
    return (other.t() @ one.t()).t().contiguous()


def _fill_slopes(slopes: Tensor, gates: Tensor, cells: Tensor, curves: Tensor, carried: Tensor) -> Tensor:
    """Computes what the gradients of cells and states are multiplied with, for all steps at once.

    Fills `slopes` (T, B, 5H): the slopes of the cells by the sums of the first three gates, and of the states by the
    sums of the other two. Returns the slopes of the states by the cells, (T, B, H).
    """
    torch.addcmul(gates, gates, gates, value=-1, out=slopes)  # those of the sigmoids
    enter, candidate, _, leave, carry = gates.chunk(_GATES, dim=2)
    by_gate = slopes.chunk(_GATES, dim=2)
    by_gate[0].mul_((candidate - 0.5).mul_(4.0))
    by_gate[1].mul_(enter).mul_(4.0)
    by_gate[2].mul_(cells[:-1])
    by_gate[3].mul_(curves).mul_(carry)
    by_gate[4].mul_((curves * leave).sub_(carried))
    return (0.25 - curves.square()).mul_(leave).mul_(carry)


def _run_forward_steps(
    starts: Tensor,
    carried: Tensor,
    recurrent_weight: Tensor,
    factors: Tensor,
    gates: Tensor,
    cells: Tensor,
    curves: Tensor,
    outputs: Tensor,
) -> None:
    """Fills (T, B, 5H) gates, (T + 1, B, H) cells, (T, B, H) curves and (T + 1, B, H) outputs.

    The first of T + 1 steps stays as it is. The states' part of the gates is added to `starts` (T, B, 5H), the inputs'
    part, which may be `gates`. `carried` (T, B, H) is the highway's part of the outputs. The other shapes:
    recurrent_weight (H, 5H), factors (B, H).
    """
    for step in range(len(starts)):
        gate, cell = gates[step], cells[step + 1]
        start = starts[step].addmm_(outputs[step], recurrent_weight)
        torch.sigmoid(start.to(gate.dtype), out=gate)
        enter, candidate, forget, leave, carry = gate.chunk(_GATES, dim=1)  # each (B, H)
        torch.mul(cells[step], forget, out=cell)
        cell.addcmul_(enter, candidate - 0.5, value=4.0)
        curve = torch.sigmoid(cell, out=curves[step]).sub_(0.5)
        outputs[step + 1].copy_(torch.lerp(carried[step], curve * leave, carry).mul_(factors))


def _run_backward_steps(
    states: Tensor, slopes: Tensor, cell_slopes: Tensor, forget: Tensor, recurrent_weight: Tensor, factors: Tensor
) -> None:
    """Turns the slopes into gradients of the gates' sums, and adds the gradients from later steps to `states`.

    states (T, B, H) are gradients. For slopes (T, B, 5H) and cell_slopes (T, B, H) see `_fill_slopes`. The other
    shapes: forget (T, B, H), recurrent_weight (5H, H), factors (B, H).
    """
    cells = torch.zeros_like(factors)  # gradients of the cells after the step
    state = torch.zeros_like(factors)
    for step in reversed(range(len(states))):
        state = states[step].addcmul_(state, factors)
        cells = torch.addcmul(cells, state, cell_slopes[step])
        slope = slopes[step]
        by_gate = slope.unflatten(1, (_GATES, -1))  # (B, 5, H)
        by_gate[:, :3].mul_(cells.unsqueeze(1))
        by_gate[:, 3:].mul_(state.unsqueeze(1))
        cells = cells * forget[step]
        state = (slope.to(recurrent_weight.dtype) @ recurrent_weight).to(factors.dtype)
