"""LSTMs with projection and clipping, in one direction and in both: the reference for the faster versions.

`ProjectedLstm` is the step, `LstmStack` the layers of one direction, and `run_both_directions` runs two stacks over
sentences with padding. `elmo/fast/recurrence.py` computes the same for frozen weights, and
`pretraining/recurrence.py` in training. Their tests compare them with this module.

# N tokens of all sentences, packed: first every sentence's first token, longest sentence first, then every second, ...
# R sentences that still go on, I input features, H cells, P output features, B sentences, S tokens of the longest,
# L layers, D = 2P features of both directions, U distinct tokens
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from elmo_tasks.elmo.options import LstmOptions

LstmState = tuple[Tensor, Tensor]
"""A layer's output (B, P) and its cells (B, H) after a sentence's last token."""


class ProjectedLstm(nn.Module):
    """One LSTM layer in one direction, exactly as TensorFlow's `LSTMCell` computes it with projection and clips.

    i, g, f, o = split(x W_x + h W_h + b)
    c = clip(sigmoid(f + 1) c + sigmoid(i) tanh(g));  h = clip(W_p (sigmoid(o) tanh(c)))

    Gates are in the order of the weights file (input, candidate, forget, output). The forget gate's constant 1 is only
    added in `forward`, so that weights are read and written bit for bit. Without a projection (Sak et al. 2014) the
    output is that of the cell and is not clipped.

    New weights are uniform over ±1/√H, as those of `torch.nn.LSTM`; biases are zero.
    """

    def __init__(self, options: LstmOptions) -> None:
        super().__init__()
        cells, size = options.dim, options.projection_dim
        self.cell_clip = options.cell_clip
        self.projection_clip = options.proj_clip
        self.input_weight = nn.Parameter(torch.empty(4 * cells, size))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * cells, size))
        self.bias = nn.Parameter(torch.zeros(4 * cells))
        self.projection_weight: nn.Parameter | None = None
        if options.has_projection:
            self.projection_weight = nn.Parameter(torch.empty(size, cells))
        bound = 1.0 / math.sqrt(cells)
        for weight in (self.input_weight, self.recurrent_weight, self.projection_weight):
            if weight is not None:
                nn.init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{len(self.bias) // 4} cells, {self.input_weight.shape[1]} features"

    def initial_state(self, rows: int) -> LstmState:
        """The state of zeros for this many sentences."""
        size, cells = self.input_weight.shape[1], len(self.bias) // 4
        return self.bias.new_zeros(rows, size), self.bias.new_zeros(rows, cells)

    def forward(self, inputs: Tensor, batch_sizes: Sequence[int], state: LstmState) -> tuple[Tensor, LstmState]:
        """Runs the layer over packed sequences.

        Arguments:
            inputs: (N, I), packed.
            batch_sizes: how many sentences have a first, a second, ... token: falling, with the sum N.
            state: where each sentence starts, (B, P) and (B, H), the longest sentence first.

        Returns:
            outputs (N, P), packed, and each sentence's state after its own last token.
        """
        hidden, cell = state
        outputs: list[Tensor] = []
        finished: list[LstmState] = []
        # The inputs' part of all gates is one product for all tokens; the loop only computes the recurrent part.
        first, second, forget, last = self.bias.chunk(4)
        bias = torch.cat([first, second, forget + 1.0, last])
        for gates in functional.linear(inputs, self.input_weight, bias).split(list(batch_sizes)):
            rows = len(gates)
            if rows < len(hidden):
                finished.append((hidden[rows:], cell[rows:]))
            hidden, cell = self._step(gates, hidden[:rows], cell[:rows])
            outputs.append(hidden)
        finished.append((hidden, cell))
        final_hidden, final_cell = (torch.cat(parts) for parts in zip(*reversed(finished), strict=True))
        return torch.cat(outputs), (final_hidden, final_cell)

    def _step(self, input_gates: Tensor, hidden: Tensor, cell: Tensor) -> LstmState:
        """One token: (R, 4H), (R, P), (R, H) -> (R, P), (R, H)"""
        gates = torch.addmm(input_gates, hidden, self.recurrent_weight.t())  # (R, 4H)
        enter, candidate, forget, leave = gates.chunk(4, dim=-1)  # each (R, H)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
        if self.cell_clip is not None:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        hidden = torch.sigmoid(leave) * torch.tanh(cell)
        if self.projection_weight is not None:
            hidden = functional.linear(hidden, self.projection_weight)  # (R, P)
            if self.projection_clip is not None:
                hidden = hidden.clamp(-self.projection_clip, self.projection_clip)
        return hidden, cell


class LstmStack(nn.Module):
    """The LSTM layers of one direction, with skip connections around each layer but the first.

    Source: bilm-tf's `BidirectionalLanguageModelGraph`.
    """

    def __init__(self, options: LstmOptions) -> None:
        super().__init__()
        layers = nn.ModuleList(ProjectedLstm(options) for _ in range(options.n_layers))
        self.layers = cast("Sequence[ProjectedLstm]", layers)  # a ModuleList has no type for its items
        self.skips = options.use_skip_connections

    def initial_states(self, rows: int) -> list[LstmState]:
        """The states of zeros, one per layer."""
        return [layer.initial_state(rows) for layer in self.layers]

    def forward(
        self, inputs: Tensor, batch_sizes: Sequence[int], states: Sequence[LstmState]
    ) -> tuple[list[Tensor], list[LstmState]]:
        """Runs all layers over packed sequences; see `ProjectedLstm.forward`.

        Returns:
            each layer's outputs (N, P), packed, and each layer's states after the sentences' last tokens.
        """
        outputs: list[Tensor] = []
        final_states: list[LstmState] = []
        for depth, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            output, final_state = layer(inputs, batch_sizes, state)
            inputs = output + inputs if self.skips and depth > 0 else output
            outputs.append(inputs)
            final_states.append(final_state)
        return outputs, final_states


def run_both_directions(
    stacks: Sequence[LstmStack],
    table: Tensor,
    index: Tensor,
    lengths: Tensor,
    states: Sequence[Sequence[LstmState]],
) -> tuple[Tensor, list[LstmState]]:
    """Runs the forward and the backward stack over sentences with padding; the backward one reads from the end.

    Arguments:
        stacks: the forward and the backward stack.
        table: (U, P) vectors of distinct tokens.
        index: (B, S) int64, the table's row of each token; what stands in the padding does not matter.
        lengths: (B,) tokens of each sentence. There is at least one sentence, and each has at least one token.
        states: where the layers of each stack start, (B, P) and (B, H) for each layer.

    Returns:
        the tokens' vectors and each layer's outputs (B, S, L+1, D), zero in the padding; and each layer's states after
        the sentences' last tokens, those of the forward stack first.
    """
    batch, padded_length = index.shape
    longest_first, order = lengths.sort(descending=True, stable=True)
    steps = torch.arange(padded_length, device=index.device).expand(batch, -1)  # (B, S)
    halves: list[Tensor] = []
    final: list[LstmState] = []
    for backward, (stack, starts) in enumerate(zip(stacks, states, strict=True)):
        read = longest_first[:, None] - 1 - steps if backward else steps
        packed = pack_padded_sequence(order[:, None] * padded_length + read, longest_first.cpu(), batch_first=True)
        inputs = table[index.flatten()[packed.data]]  # (N, P)
        sorted_starts = [(hidden[order], cell[order]) for hidden, cell in starts]
        outputs, ends = stack(inputs, packed.batch_sizes.tolist(), sorted_starts)
        layers = torch.stack([inputs, *outputs], dim=1)  # (N, L+1, P)
        padded = inputs.new_zeros(batch * padded_length, *layers.shape[1:])
        halves.append(padded.index_copy(0, packed.data, layers))
        original_order = order.argsort()
        final += [(hidden[original_order], cell[original_order]) for hidden, cell in ends]
    return torch.cat(halves, dim=-1).unflatten(0, (batch, padded_length)), final


@dataclasses.dataclass(frozen=True)
class DoubledWeights:
    """A `ProjectedLstm`'s weights for steps that compute every tanh with a sigmoid.

    torch's vectorized sigmoid is about six times as fast as its tanh, and tanh(x) = 2 sigmoid(2x) - 1. The factors of
    2 are put into the weights beforehand, so that a step has no additional operation. They are powers of two: nothing
    is rounded.

    - The candidate: its weights and its bias are doubled. With s = sigmoid(2a), tanh(a) = 2 (s - 1/2).
    - The cells: their double C = 2c is kept, and clips of cells are doubled. c' = f c + i tanh(a) becomes
      C' = f C + 4 i (s - 1/2).
    - The cells' output: with q = sigmoid(C) - 1/2, tanh(c) = 2q. Steps compute q, and what multiplies it next, such as
      the projection's weights, is doubled.
    - Gradients: dq/dC = sigmoid(C) (1 - sigmoid(C)) = (1/2 + q) (1/2 - q) = 1/4 - q^2.

    The constant 1 of the forget gate is added to its bias.
    """

    inputs: Tensor  # (4H, P)
    recurrent: Tensor  # (4H, P)
    bias: Tensor  # (4H,)
    projection: Tensor | None  # (P, H)
    cell_clip: float | None

    @classmethod
    def of(cls, lstm: ProjectedLstm) -> DoubledWeights:
        num_cells = len(lstm.bias) // 4
        factors = torch.cat([lstm.bias.new_full((num_cells,), factor) for factor in (1.0, 2.0, 1.0, 1.0)])  # (4H,)
        shifts = torch.cat([lstm.bias.new_full((num_cells,), shift) for shift in (0.0, 0.0, 1.0, 0.0)])  # (4H,)
        return cls(
            inputs=lstm.input_weight * factors[:, None],
            recurrent=lstm.recurrent_weight * factors[:, None],
            bias=lstm.bias * factors + shifts,
            projection=None if lstm.projection_weight is None else 2.0 * lstm.projection_weight,
            cell_clip=None if lstm.cell_clip is None else 2.0 * lstm.cell_clip,
        )
