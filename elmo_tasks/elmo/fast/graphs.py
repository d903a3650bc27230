"""The recurrent layers on a GPU, where launching a step's operations one by one would take longer than the step.

Some steps of a layer are recorded once as a CUDA graph, for each of a few numbers of rows, and replayed with one
launch.

# N tokens of all sentences, packed; B sentences; R rows of a program, at least as many as sentences that go on
# S steps of a program, H cells, P features
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.elmo.fast.recurrence import LstmProducts
from elmo_tasks.elmo.lstm import LstmState

_STEPS = 8  # of a long program; programs of one step compute the rest of a sentence


@dataclasses.dataclass(frozen=True)
class _Program:
    """Some steps of a layer that use fixed places in memory."""

    inputs: Tensor  # (S, R, P)
    outputs: Tensor  # (S, R, P)
    state: LstmState  # (R, P), (R, H) before the steps, and after them
    replay: Callable[[], None]


class GraphedLstm:
    """One LSTM layer of one direction, run in programs of several steps; see `LstmProducts`.

    On a CPU, where graphs do not exist, the same programs run operation by operation.

    Arguments:
        layer: the layer.
        device: where its weights are.
        pool: memory for intermediate results, shared by all graphs that never run at the same time.
    """

    def __init__(self, layer: LstmProducts, device: torch.device, pool: Any) -> None:
        self._layer = layer
        self._device = device
        self._pool = pool
        self._programs: dict[tuple[int, int], _Program] = {}

    def initial_state(self, rows: int) -> LstmState:
        """The state of zeros, for `run`."""
        return self._layer.initial_state(rows)

    def run(self, inputs: Tensor, batch_sizes: Sequence[int], state: LstmState) -> Tensor:
        """All tokens of packed sentences; see `LstmProducts.run`."""
        outputs = torch.empty_like(inputs)
        step, row = 0, 0
        while step < len(batch_sizes):
            num_steps = _STEPS if len(batch_sizes) - step >= _STEPS else 1
            sizes = batch_sizes[step : step + num_steps]
            rows = slice(row, row + sum(sizes))
            self._run_program(inputs[rows], outputs[rows], sizes, state)
            step, row = step + num_steps, rows.stop
        return outputs

    def _run_program(self, inputs: Tensor, outputs: Tensor, sizes: Sequence[int], state: LstmState) -> None:
        going_on = sizes[0]
        program = self._program(len(sizes), 1 << (going_on - 1).bit_length())
        padded_rows = program.inputs.shape[1]
        places = torch.cat([torch.arange(size) + step * padded_rows for step, size in enumerate(sizes)])
        places = places.to(self._device)  # in (S * R)
        program.inputs.flatten(0, 1).index_copy_(0, places, inputs)
        for target, source in zip(program.state, state, strict=True):
            target[:going_on] = source[:going_on]
        program.replay()
        torch.index_select(program.outputs.flatten(0, 1), 0, places, out=outputs)
        for target, source in zip(state, program.state, strict=True):
            target[:going_on] = source[:going_on]

    def _program(self, num_steps: int, rows: int) -> _Program:
        """The program for this many steps and rows, recorded at its first use."""
        if (num_steps, rows) not in self._programs:
            self._programs[num_steps, rows] = self._build_program(num_steps, rows)
        return self._programs[num_steps, rows]

    def _build_program(self, num_steps: int, rows: int) -> _Program:
        inputs = torch.zeros(num_steps, rows, self._layer.num_features, device=self._device)
        outputs = torch.zeros_like(inputs)
        hidden, cells = self.initial_state(rows)

        def run() -> None:
            starts = self._layer.inputs.start(inputs.flatten(0, 1)).view(num_steps, rows, -1)
            self._layer.steps(list(starts), list(outputs), hidden, cells)
            hidden.copy_(outputs[-1])

        replay = self._record(run) if self._device.type == "cuda" else run
        return _Program(inputs, outputs, (hidden, cells), replay)

    def _record(self, run: Callable[[], None]) -> Callable[[], None]:
        run()  # what libraries set up at their first call must not be recorded
        torch.cuda.current_stream(self._device).synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            run()
        return graph.replay
