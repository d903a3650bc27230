"""The recurrent layers of one direction with frozen weights, over packed sequences.

The reference is `elmo/lstm.py`. A biLM with these layers, `FastBiLM`, is 2.1 times as fast as `BiLM.layers` for
single sentences and 3.4 times for batches of 32 (the biLM in the package, float32, one core; docs/speed.md has more,
measured by `python -m benchmarks.bilm`).

# N tokens of all sentences, packed: first every sentence's first token, longest sentence first, then every second, ...
# R sentences that still go on, H cells, P features
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.elmo.fast.products import Precision, Product, build_product
from elmo_tasks.elmo.lstm import DoubledWeights, ProjectedLstm

logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 96  # of the inputs' part of all gates: with the published sizes, this fits into a processor's caches


class LstmSteps(nn.Module):
    """The steps of one layer, each of which needs the one before; see `ProjectedLstm` and `DoubledWeights`.

    Arguments:
        recurrent: (P) -> (4H)
        projection: (H) -> (P), of halved inputs; None for none.
        cell_clip: of the doubled cells; None for none.
        projection_clip: None for none.
    """

    def __init__(
        self, recurrent: Product, projection: Product | None, cell_clip: float | None, projection_clip: float | None
    ) -> None:
        super().__init__()
        self.recurrent, self.projection = recurrent, projection
        self.cell_clip, self.projection_clip = cell_clip, projection_clip

    def forward(self, starts: list[Tensor], outputs: list[Tensor], hidden: Tensor, cells: Tensor) -> None:
        """Some steps, one after the other.

        Arguments:
            starts: (R, 4H) each, the inputs' part of the gates.
            outputs: (R, P) each, which are filled.
            hidden: (R, P) the outputs of the step before the first.
            cells: (R, H) twice the cells of that step; they become those after each row's last step.
        """
        for start, output in zip(starts, outputs):  # noqa: B905 - TorchScript has no strict zip
            cells = cells[: len(start)]
            self._step(start, hidden[: len(start)], cells, output)
            hidden = output

    def _step(self, start: Tensor, hidden: Tensor, cell: Tensor, output: Tensor) -> None:
        gates = self.recurrent.add(start, hidden).sigmoid_()  # (R, 4H)
        enter, candidate, forget, leave = gates.chunk(4, dim=1)  # each (R, H)
        cell.mul_(forget).addcmul_(enter, candidate.sub_(0.5), value=4.0)
        if self.cell_clip is not None:
            cell.clamp_(-self.cell_clip, self.cell_clip)
        halved = cell.sigmoid().sub_(0.5).mul_(leave)  # half of the cells' outputs
        if self.projection is None:
            torch.mul(halved, 2.0, out=output)
        elif self.projection_clip is None:
            output.copy_(self.projection(halved))
        else:
            torch.clamp(self.projection(halved), -self.projection_clip, self.projection_clip, out=output)


def compiled(steps: LstmSteps) -> Callable[..., Any]:
    """The steps in TorchScript if torch still has it, otherwise as they are: slower, with the same numbers.

    They then run without the Python interpreter, which only one thread can use at a time. A biLM computes single
    sentences 1.4 times as fast, and batches of 32 1.2 times (one core; `python -m benchmarks.bilm`). TorchScript is
    deprecated, but its successors in torch need a C++ compiler, or compile again for other shapes.
    """
    try:
        with warnings.catch_warnings():  # process-wide, but only for as long as compiling takes
            warnings.simplefilter("ignore")
            scripted: Callable[..., Any] = torch.jit.script(steps)
    except (RuntimeError, OSError, AttributeError, TypeError) as error:
        logger.info("recurrent steps run in Python, since torch cannot compile them here (%s)", error)
        return steps
    return scripted


class LstmProducts:
    """One LSTM layer of one direction, as products and as few other operations as possible.

    Arguments:
        lstm: the layer, whose weights are copied.
        precision: of its products.
    """

    def __init__(self, lstm: ProjectedLstm, precision: Precision) -> None:
        self._num_cells = len(lstm.bias) // 4
        weights = DoubledWeights.of(lstm)
        self.inputs = build_product(weights.inputs, weights.bias, precision)
        steps = LstmSteps(
            build_product(weights.recurrent, None, precision),
            None if weights.projection is None else build_product(weights.projection, None, precision),
            weights.cell_clip,
            lstm.projection_clip,
        )
        # The operations of a step are so short that the two directions would wait for each other's Python code.
        self.steps = compiled(steps) if lstm.bias.device.type == "cpu" else steps

    def run(self, inputs: Tensor, batch_sizes: Sequence[int]) -> Tensor:
        """All tokens of packed sentences, from a state of zeros.

        Arguments:
            inputs: (N, P), packed.
            batch_sizes: how many sentences have a first, a second, ... token: falling, N in sum.

        Returns:
            (N, P), packed.
        """
        outputs = torch.empty_like(inputs)
        last, cells = (inputs.new_zeros(batch_sizes[0], size) for size in (inputs.shape[1], self._num_cells))
        for rows, sizes in blocks_of_steps(batch_sizes, _ROWS_AT_ONCE):
            starts, targets = self.inputs.start(inputs[rows]).split(sizes), outputs[rows].split(sizes)
            self.steps(list(starts), list(targets), last, cells)
            last = targets[-1]
        return outputs


def blocks_of_steps(batch_sizes: Sequence[int], max_rows: int) -> Iterator[tuple[slice, list[int]]]:
    """Neighbouring steps with at most `max_rows` rows in sum, or single ones: their rows and their batch sizes."""
    start, sizes, total = 0, list[int](), 0
    for size in batch_sizes:
        if sizes and total + size > max_rows:
            yield slice(start, start + total), sizes
            start, sizes, total = start + total, [], 0
        sizes.append(size)
        total += size
    yield slice(start, start + total), sizes
