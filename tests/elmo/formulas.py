"""Formulas of other projects' modules, written down step by step."""

from collections.abc import Mapping

import torch
from torch import Tensor

from elmo_tasks.elmo.options import LstmOptions


def allennlp_lstm_layers(tensors: Mapping[str, Tensor], vectors: Tensor, options: LstmOptions) -> Tensor:
    """(T, P) -> (L+1, T, 2P): AllenNLP's `ElmoLstm` with its `LstmCellWithProjection`, of one sentence."""
    halves = []
    for direction in ("forward", "backward"):
        inputs = vectors if direction == "forward" else vectors.flip(0)
        layers = [inputs]
        for number in range(options.n_layers):
            prefix = f"{direction}_layer_{number}"
            read, recur = (tensors[f"{prefix}.{name}_linearity.weight"] for name in ("input", "state"))
            hidden, memory = torch.zeros(options.projection_dim), torch.zeros(options.dim)
            outputs = []
            for token in inputs:
                gates = read @ token + recur @ hidden + tensors[f"{prefix}.state_linearity.bias"]
                enter, forget, candidate, leave = gates.chunk(4)
                memory = _clipped(enter.sigmoid() * candidate.tanh() + forget.sigmoid() * memory, options.cell_clip)
                output = tensors[f"{prefix}.state_projection.weight"] @ (leave.sigmoid() * memory.tanh())
                hidden = _clipped(output, options.proj_clip)
                outputs.append(hidden)
            inputs = torch.stack(outputs) + (inputs if number else 0.0)
            layers.append(inputs)
        halves.append(torch.stack([layer if direction == "forward" else layer.flip(0) for layer in layers]))
    return torch.cat(halves, dim=-1)


def _clipped(values: Tensor, most: float | None) -> Tensor:
    assert most is not None
    return values.clamp(-most, most)
