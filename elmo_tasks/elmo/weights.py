"""Weights of a biLM in the HDF5 layout of bilm-tf and AllenNLP.

char_embed                                              (261, E)      without the mask's row of zeros
CNN/W_cnn_{i}, CNN/b_cnn_{i}                            (1, width, E, filters), (filters,)
CNN_high_{i}/W_carry, b_carry, W_transform, b_transform (F, F), (F,)
CNN_proj/W_proj, b_proj                                 (F, P), (P,)  missing if F = P
RNN_{0,1}/RNN/MultiRNNCell/Cell{n}/LSTMCell/
    W_0, B                                              (2P, 4H), (4H,): inputs above outputs; gates i, g, f, o
    W_P_0                                               (H, P)        missing if H = P

# E features of a character, F filters of all widths, P features of one direction, H cells
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import torch
from torch import Tensor

from elmo_tasks.elmo.characters import NUM_CHARACTERS
from elmo_tasks.elmo.lstm import ProjectedLstm
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.errors import WeightsError
from elmo_tasks.files import atomic_path

if TYPE_CHECKING:
    from elmo_tasks.elmo.bilm import BiLM

_CHARACTERS = "char_embed"
_GROUPS = ("CNN", "RNN_")  # what the options account for in full


def read_weights(bilm: BiLM, path: str | Path) -> None:
    """Fills a biLM with the weights of a file.

    A `char_embed` may have 262 rows, the first of them the mask's, or 261. Groups that do not belong to the layers of a
    biLM, such as a softmax, are skipped.

    Arguments:
        bilm: the biLM, with the architecture that the file should have.
        path: the HDF5 file, of any floating-point type.

    Raises:
        WeightsError: the file is missing or damaged, is not a biLM, or has other sizes than the biLM.
    """
    with _opened(path) as file, torch.no_grad():
        wanted = _file_views(bilm)
        _check_names(file, set(wanted), path)
        for name, views in wanted.items():
            values = torch.from_numpy(_values(file, name, path))
            rows = [len(view) for view in views]
            if name == _CHARACTERS and len(values) == NUM_CHARACTERS:
                values = values[1:]
            shape = (sum(rows), *views[0].shape[1:])
            if values.shape != shape:
                came = _shape(values.shape)
                raise WeightsError(f"{path}: {name} has shape {came}; wanted {_shape(shape)}, by the options")
            for view, part in zip(views, values.split(rows), strict=True):
                view.copy_(part)
        bilm.token_encoder.embedding.weight[0] = 0.0


def write_weights(bilm: BiLM, path: str | Path, half_precision: bool = False) -> None:
    """Writes a biLM's weights, atomically.

    Arguments:
        bilm: the biLM.
        path: the HDF5 file to write.
        half_precision: write float16 instead of float32: half the size, and three decimal digits.

    Raises:
        WeightsError: a weight is too large for half precision.
    """
    dtype = np.float16 if half_precision else np.float32
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        for name, values in _arrays(bilm):
            if half_precision and np.abs(values).max() > np.finfo(np.float16).max:
                raise WeightsError(f"{path}: {name} holds values too large for half precision; write float32")
            file.create_dataset(name, data=values, dtype=dtype)


def fingerprint(bilm: BiLM) -> str:
    """The SHA-256 of a biLM's architecture and weights, in hexadecimal.

    The number of characters (261 or 262) and keys that only matter in training do not change it.
    """
    digest = hashlib.sha256(json.dumps(bilm.options.architecture(), sort_keys=True).encode())
    for name, values in _arrays(bilm):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _file_views(bilm: BiLM) -> dict[str, list[Tensor]]:
    """For each dataset of the file, views of the biLM's parameters that form it, stacked, with its axes."""
    views = _token_views(bilm.token_encoder)
    for direction, stack in enumerate(bilm.directions):
        for depth, lstm in enumerate(stack.layers):
            prefix = f"RNN_{direction}/RNN/MultiRNNCell/Cell{depth}/LSTMCell"
            views |= {f"{prefix}/{name}": parts for name, parts in _lstm_views(lstm).items()}
    return {name: [part.detach() for part in parts] for name, parts in views.items()}


def _token_views(encoder: TokenEncoder) -> dict[str, list[Tensor]]:
    views: dict[str, list[Tensor]] = {_CHARACTERS: [encoder.embedding.weight[1:]]}
    for number, convolution in enumerate(encoder.convolutions):
        assert convolution.bias is not None  # it is None only for a Conv1d without bias
        views[f"CNN/W_cnn_{number}"] = [convolution.weight.permute(2, 1, 0)[None]]
        views[f"CNN/b_cnn_{number}"] = [convolution.bias]
    for number, highway in enumerate(encoder.highways):
        views[f"CNN_high_{number}/W_carry"] = [highway.carry.weight.t()]
        views[f"CNN_high_{number}/b_carry"] = [highway.carry.bias]
        views[f"CNN_high_{number}/W_transform"] = [highway.transform.weight.t()]
        views[f"CNN_high_{number}/b_transform"] = [highway.transform.bias]
    if encoder.projection is not None:
        views["CNN_proj/W_proj"] = [encoder.projection.weight.t()]
        views["CNN_proj/b_proj"] = [encoder.projection.bias]
    return views


def _lstm_views(lstm: ProjectedLstm) -> dict[str, list[Tensor]]:
    views: dict[str, list[Tensor]] = {"W_0": [lstm.input_weight.t(), lstm.recurrent_weight.t()], "B": [lstm.bias]}
    if lstm.projection_weight is not None:
        views["W_P_0"] = [lstm.projection_weight.t()]
    return views


def _arrays(bilm: BiLM) -> Iterator[tuple[str, np.ndarray]]:
    """Each dataset's name and its float32 values."""
    for name, views in _file_views(bilm).items():
        yield name, torch.cat(views).float().cpu().numpy()


@contextlib.contextmanager
def _opened(path: str | Path) -> Iterator[h5py.File]:
    if not Path(path).is_file():
        raise WeightsError(f"{path}: no such file; wanted a biLM's weights in bilm-tf's HDF5 layout")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        reason = "it is cut short" if "truncated" in str(error) else "it is not an HDF5 file, or damaged"
        raise WeightsError(f"{path}: {reason}; wanted a biLM's weights in bilm-tf's HDF5 layout") from error
    with file:
        yield file


def _check_names(file: h5py.File, wanted: set[str], path: str | Path) -> None:
    """Checks that the file has every dataset that the options need, and no other layer."""
    found: set[str] = set()
    file.visititems(lambda name, item: found.add(name) if isinstance(item, h5py.Dataset) else None)
    missing = sorted(wanted - found)
    if len(missing) == len(wanted):
        held = ", ".join(sorted(file)[:5]) or "nothing"
        raise WeightsError(
            f"{path}: holds {held}; wanted a biLM's weights in bilm-tf's layout: {_CHARACTERS}, CNN, RNN_0, ..."
        )
    if missing:
        raise WeightsError(f"{path}: {_some(missing)} missing; wanted by the options")
    unknown = sorted(name for name in found - wanted if name.startswith(_GROUPS))
    if unknown:
        raise WeightsError(
            f"{path}: holds {_some(unknown)}, which the options have no layer for; wanted the options of these weights"
        )


def _values(file: h5py.File, name: str, path: str | Path) -> np.ndarray:
    """A dataset's values as float32."""
    dataset = file[name]
    if not np.issubdtype(dataset.dtype, np.floating):
        raise WeightsError(f"{path}: {name} holds {dataset.dtype}; wanted floating-point numbers")
    try:
        values = dataset[...].astype(np.float32)
    except OSError as error:
        raise WeightsError(f"{path}: {name} cannot be read, the file is damaged ({error})") from error
    if not np.isfinite(values).all():
        raise WeightsError(
            f"{path}: {name} holds values that are not finite; wanted finite numbers, the file is damaged"
        )
    return values


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "()"


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
