"""The recurrent layers of one direction with frozen weights, over packed sequences.

The reference is `elmo/lstm.py`. A biLM with these layers, `FastBiLM`, is 2.5 times as fast as `BiLM.layers` for
single sentences and 2.0 times for batches of 32, or 3.1 and 2.8 times if all words are known (the biLM in the package,
float32, one core that other programs used, too; docs/speed.md has more).

# N tokens of all sentences, packed: first every sentence's first token, longest sentence first, then every second, ...
# R sentences that still go on, H cells, P features
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.elmo.fast.products import Precision, build_product
from elmo_tasks.elmo.lstm import DoubledWeights, LstmStack, ProjectedLstm

logger = logging.getLogger(__name__)


class LstmLayer(nn.Module):
    """One LSTM layer of one direction, as products and as few other operations as possible.

    See `ProjectedLstm` and `DoubledWeights`. All sentences begin with the same border, so its step is computed once.

    Arguments:
        lstm: the layer, whose weights are copied.
        border: (1, P) what it reads at the border.
        precision: of its products.
    """

    def __init__(self, lstm: ProjectedLstm, border: Tensor, precision: Precision) -> None:
        super().__init__()
        weights = DoubledWeights.of(lstm)
        build = functools.partial(build_product, precision=precision, few_rows=True)
        self.inputs, self.recurrent = build(weights.inputs, weights.bias), build(weights.recurrent, None)
        self.projection = None if weights.projection is None else build(weights.projection, None)
        self.cell_clip, self.projection_clip = weights.cell_clip, lstm.projection_clip
        self.one_half = torch.tensor(0.5)  # operators would make this tensor again from each number
        self.cells = border.new_zeros(1, len(lstm.bias) // 4)  # doubled
        self.hidden = self._run(border, [[1]], torch.zeros_like(border), self.cells)

    def forward(self, inputs: Tensor, blocks: list[list[int]]) -> Tensor:
        """All tokens of packed sentences.

        Arguments:
            inputs: (N, P), packed.
            blocks: see `blocks_of_steps`.

        Returns:
            (N, P), packed.
        """
        rows = blocks[0][0]
        return self._run(inputs, blocks, self.hidden.repeat(rows, 1), self.cells.repeat(rows, 1))

    def _run(self, inputs: Tensor, blocks: list[list[int]], hidden: Tensor, cells: Tensor) -> Tensor:
        """See `forward`; (R, P) and (R, H) are the state to start from. `cells` become those after the last steps."""
        outputs = torch.empty_like(inputs)
        gates = cells.new_empty(len(cells), 4 * cells.shape[1])
        enter, candidate, forget, leave = gates.chunk(4, dim=1)  # each (R, H)
        begin = 0
        for sizes in blocks:
            end = begin + sum(sizes)
            starts, targets = self.inputs.start(inputs[begin:end]).split(sizes), outputs[begin:end].split(sizes)
            for start, target in zip(starts, targets):  # noqa: B905 - TorchScript has no strict zip
                if len(start) < len(cells):
                    hidden, cells, gates = hidden[: len(start)], cells[: len(start)], gates[: len(start)]
                    enter, candidate, forget, leave = gates.chunk(4, dim=1)
                torch.sigmoid(self.recurrent.add(start, hidden), out=gates)
                cells.mul_(forget).addcmul_(enter, candidate.sub_(self.one_half), value=4.0)
                if self.cell_clip is not None:
                    cells.clamp_(-self.cell_clip, self.cell_clip)
                halved = cells.sigmoid().sub_(self.one_half).mul_(leave)  # half of the cells' outputs
                if self.projection is None:
                    torch.mul(halved, 2.0, out=target)
                elif self.projection_clip is None:
                    target.copy_(self.projection(halved))
                else:
                    torch.clamp(self.projection(halved), -self.projection_clip, self.projection_clip, out=target)
                hidden = target
            begin = end
        return outputs


class FastStack(nn.Module):
    """The layers of one direction; see `LstmStack`.

    Arguments:
        stack: the layers, whose weights are copied.
        border: (1, P) the vector of the border at which the direction begins.
        precision: of the products.
    """

    def __init__(self, stack: LstmStack, border: Tensor, precision: Precision) -> None:
        super().__init__()
        self.layers, self.skips = nn.ModuleList(), stack.skips
        for depth, lstm in enumerate(stack.layers):
            layer = LstmLayer(lstm, border, precision)
            border = layer.hidden + border if stack.skips and depth > 0 else layer.hidden
            self.layers.append(layer)

    def forward(self, inputs: Tensor, targets: Tensor, rows: Tensor, blocks: list[list[int]], distance: int) -> None:
        """Computes all layers for all tokens of packed sentences.

        Arguments:
            inputs: (N, P) the tokens' vectors, packed: layer 0.
            targets: (N,) where they go in `rows`.
            rows: (any, P), which are filled with the vectors of all layers.
            blocks: see `blocks_of_steps`.
            distance: how many rows after a token's vector in one layer is that in the next one.
        """
        rows.index_copy_(0, targets, inputs)
        for depth, layer in enumerate(self.layers):
            outputs = layer(inputs, blocks)
            inputs = outputs.add_(inputs) if self.skips and depth > 0 else outputs
            targets = targets + distance
            rows.index_copy_(0, targets, inputs)


def compiled(module: nn.Module) -> Callable[..., Any]:
    """A module in TorchScript if torch still has it, otherwise as it is: slower, with the same numbers.

    It then runs without the Python interpreter, which only one thread can use at a time. A biLM computes single
    sentences 1.3 times as fast, and batches of 32 1.2 times (1.6 and 1.4 times if all words are known). TorchScript is
    deprecated, but its successors in torch need a C++ compiler, or compile again for other shapes.
    """
    try:
        with warnings.catch_warnings():  # process-wide, but only for as long as compiling takes
            warnings.simplefilter("ignore")
            scripted: Callable[..., Any] = torch.jit.script(module)
    except (RuntimeError, OSError, AttributeError, TypeError) as error:
        logger.info("recurrent steps run in Python, since torch cannot compile them here (%s)", error)
        return module
    return scripted


def blocks_of_steps(lengths: Sequence[int], max_rows: int = 96) -> list[list[int]]:
    """The batch sizes of all steps: how many sentences have a first token, a second one, ...

    Neighbouring steps with at most `max_rows` rows in sum are one block, whose inputs' part of all gates is computed at
    once. With the published sizes, it fits into a processor's caches.

    Arguments:
        lengths: the tokens of each sentence, the longest first.
    """
    blocks, size = list[list[int]](), len(lengths)
    for step in range(lengths[0]):
        while lengths[size - 1] <= step:
            size -= 1
        if not blocks or sum(blocks[-1]) + size > max_rows:
            blocks.append([])
        blocks[-1].append(size)
    return blocks
