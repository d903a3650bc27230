"""AllenNLP's names of a biLM's tensors, and how their values differ from ours.

AllenNLP's LSTM gates are in the order input, forget, candidate, output, and the 1 of the forget gate is part of the
bias; ours are in the order of the weights file, see `ProjectedLstm`. The gate of AllenNLP's `Highway` is the share of
the input, so that its weights are the negative of bilm-tf's.

# P features of one direction, H cells, F filters
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping

import torch
from torch import Tensor

_PARTS = ("_token_embedder.", "_elmo_lstm.")
_CHARACTERS = "_token_embedder._char_embedding_weights"
_CONVOLUTION = re.compile(r"_token_embedder\.char_conv_(\d+)\.(weight|bias)")
_HIGHWAY = re.compile(r"_token_embedder\._highways\._layers\.(\d+)\.(weight|bias)")
_PROJECTION = re.compile(r"_token_embedder\._projection\.(weight|bias)")
_LSTM = re.compile(r"_elmo_lstm\.(forward|backward)_layer_(\d+)\.(\w+\.\w+)")
_LSTM_NAMES = {
    "input_linearity.weight": "input_weight",
    "state_linearity.weight": "recurrent_weight",
    "state_linearity.bias": "bias",
    "state_projection.weight": "projection_weight",
}


def bilm_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of AllenNLP's `_ElmoBiLm`, by their names in its state dict, as those of a `BiLM`.

    Other names, and tensors that cannot be split, stay as they are.
    """
    return dict(item for name, tensor in tensors.items() for item in _renamed(name, tensor))


def rename_bilm(tensors: MutableMapping[str, Tensor], prefix: str) -> None:
    """Renames a biLM's tensors in a state dict, if they have AllenNLP's names after a prefix; see `bilm_tensors`."""
    starts = tuple(prefix + part for part in _PARTS)
    names = [name for name in tensors if name.startswith(starts)]
    renamed = bilm_tensors({name.removeprefix(prefix): tensors.pop(name) for name in names})
    tensors.update({prefix + name: tensor for name, tensor in renamed.items()})


def _renamed(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    rows = tensor.shape[0] if tensor.dim() else 0
    if name == _CHARACTERS and rows:
        # The first row is that of padding, whose vectors are never read.
        yield "token_encoder.embedding.weight", torch.cat([torch.zeros_like(tensor[:1]), tensor[1:]])
    elif match := _CONVOLUTION.fullmatch(name):
        yield f"token_encoder.convolutions.{match[1]}.{match[2]}", tensor
    elif (match := _HIGHWAY.fullmatch(name)) and rows and rows % 2 == 0:
        transform, gate = tensor.chunk(2)  # each (F, F) or (F,)
        yield f"token_encoder.highways.{match[1]}.transform.{match[2]}", transform.clone()
        yield f"token_encoder.highways.{match[1]}.carry.{match[2]}", -gate
    elif match := _PROJECTION.fullmatch(name):
        yield f"token_encoder.projection.{match[1]}", tensor
    elif (match := _LSTM.fullmatch(name)) and match[3] in _LSTM_NAMES:
        if match[3] != "state_projection.weight" and rows and rows % 4 == 0:
            enter, forget, candidate, leave = tensor.chunk(4)  # each (H, P) or (H,)
            forget = forget - 1.0 if match[3] == "state_linearity.bias" else forget
            tensor = torch.cat([enter, candidate, forget, leave])
        yield f"directions.{int(match[1] == 'backward')}.layers.{match[2]}.{_LSTM_NAMES[match[3]]}", tensor
    else:
        yield name, tensor
