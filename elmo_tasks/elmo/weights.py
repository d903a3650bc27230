"""Weights of a biLM in the HDF5 layout of bilm-tf and AllenNLP.

char_embed                                              (261, E)      without the mask's row of zeros
CNN/W_cnn_{i}, CNN/b_cnn_{i}                            (1, width, E, filters), (filters,)
CNN_high_{i}/W_carry, b_carry, W_transform, b_transform (F, F), (F,)
CNN_proj/W_proj, b_proj                                 (F, P), (P,)  missing if F = P
RNN_{0,1}/RNN/MultiRNNCell/Cell{n}/LSTMCell/
    W_0, B                                              (2P, 4H), (4H,): inputs above outputs; gates i, g, f, o
    W_P_0                                               (H, P)        missing if H = P

Only biLMs with lists of words and characters, as those of ELMoForManyLangs, whose `char_embed` is (characters, E):
word_embed                                              (words, W)
words, characters                                       (bytes,)      of UTF-8, with line feeds between the items

# E features of a character, F filters of all widths, P features of one direction, H cells
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np
import torch
from torch import Tensor

from elmo_tasks.elmo.characters import NUM_CHARACTERS
from elmo_tasks.elmo.lstm import LstmStack
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.errors import WeightsError, some_of
from elmo_tasks.files.atomic import atomic_output
from elmo_tasks.files.limits import ADVICE, unpacked_numbers

_CHARACTERS = "char_embed"
_LISTS = ("words", "characters")
_DAMAGE = (OSError, RuntimeError, LookupError, TypeError, ValueError)  # h5py raises them all
_GROUPS = ("CNN", "RNN_")  # every dataset in them must be one that the options need


def read_weights(path: str | Path, encoder: TokenEncoder, directions: Sequence[LstmStack]) -> None:
    """Fills the parts of a biLM with the weights of a file that has passed `check_weights`.

    A `char_embed` may have 262 rows, the first of them the mask's, or 261. Groups that do not belong to the layers of a
    biLM, such as a softmax, are skipped.

    Arguments:
        path: the HDF5 file, of any floating-point type.
        encoder: the token layer, with the architecture that the file should have.
        directions: the forward and the backward LSTMs.

    Raises:
        WeightsError: the file is missing or damaged, or a value is not finite.
    """
    with _opened(path) as file, torch.no_grad():
        expected = _file_views(encoder, directions)
        for name, views in expected.items():
            values = torch.from_numpy(_values(file, name, path))
            rows = [len(view) for view in views]
            if name == _CHARACTERS and len(values) > sum(rows):
                values = values[1:]
            for view, part in zip(views, values.split(rows), strict=True):
                if view.dim() == 2 and not view.is_contiguous():
                    view, part = view.t(), part.t().contiguous()  # torch copies three times as fast this way
                view.copy_(part)
        encoder.embedding.weight[: encoder.first_row] = 0.0


def check_weights(path: str | Path, encoder: TokenEncoder, directions: Sequence[LstmStack]) -> None:
    """Checks, without reading any values, that a file has the datasets of a biLM's parts.

    So the parts can be on the device "meta": sizes that the file does not have take no memory. The file must hold its
    values itself: HDF5 can also take them from other files.

    Raises:
        WeightsError: as for `read_weights`, except that the values are not checked.
    """
    with _opened(path) as file:
        expected = _file_views(encoder, directions)
        _check_names(file, set(expected), path)
        num_bytes = 0
        for name, views in expected.items():
            dataset = file[name]
            if dataset.is_virtual or dataset.external:
                raise WeightsError(f"{path}: {name} takes its values from other files; expected them in this file")
            if not (dataset.dtype == np.uint8 if name in _LISTS else np.issubdtype(dataset.dtype, np.floating)):
                kind = "bytes" if name in _LISTS else "floating-point numbers"
                raise WeightsError(f"{path}: {name} holds {dataset.dtype}; expected {kind}")
            shape = (sum(len(view) for view in views), *views[0].shape[1:])
            with_mask = (NUM_CHARACTERS, *shape[1:]) if encoder.first_row else shape  # its row is skipped
            if dataset.shape != shape and not (name == _CHARACTERS and dataset.shape == with_mask):
                sizes_here, sizes_needed = (
                    " x ".join(map(str, sizes or ())) or "()" for sizes in (dataset.shape, shape)
                )
                raise WeightsError(f"{path}: {name} has shape {sizes_here}; expected {sizes_needed}, by the options")
            num_bytes += dataset.nbytes
        if num_bytes > (most := unpacked_numbers(Path(path).stat().st_size)):
            raise WeightsError(f"{path}: unpacks to {num_bytes:,} bytes; expected at most {most:,}; {ADVICE}")


def write_weights(
    path: str | Path, encoder: TokenEncoder, directions: Sequence[LstmStack], half_precision: bool = False
) -> None:
    """Writes the weights of a biLM's parts, atomically, as float32, or as float16 with about three decimal digits.

    Raises:
        WeightsError: a weight is too large for half precision.
    """
    with atomic_output(path) as stream, h5py.File(stream, "w") as file:
        for name, values in _arrays(encoder, directions):
            dtype = np.float16 if half_precision else np.float32
            if name in _LISTS:
                file.create_dataset(name, data=values, dtype=np.uint8)
                continue
            if half_precision and np.abs(values).max() > np.finfo(np.float16).max:
                raise WeightsError(f"{path}: {name} holds values too large for half precision; write float32")
            file.create_dataset(name, data=values, dtype=dtype)


def fingerprint(options: BiLMOptions, encoder: TokenEncoder, directions: Sequence[LstmStack]) -> str:
    """The SHA-256 of a biLM's architecture and weights, in hexadecimal.

    The number of characters (261 or 262) and keys that only matter in training do not change it.
    """
    digest = hashlib.sha256(json.dumps(options.architecture(), sort_keys=True).encode())
    for name, values in _arrays(encoder, directions):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _file_views(encoder: TokenEncoder, directions: Sequence[LstmStack]) -> dict[str, list[Tensor]]:
    """For each dataset of the file, views of the parameters that form it, stacked, with its axes."""
    views: dict[str, list[Tensor]] = {_CHARACTERS: [encoder.embedding.weight[encoder.first_row :]]}
    views |= {name: [tensor] for name, tensor in encoder.own_tensors().items()}
    for number, convolution in enumerate(encoder.convolutions):
        assert convolution.bias is not None  # it is None only for a Conv1d without bias
        views[f"CNN/W_cnn_{number}"] = [convolution.weight.permute(2, 1, 0)[None]]
        views[f"CNN/b_cnn_{number}"] = [convolution.bias]
    linear = {
        f"CNN_high_{number}/{{}}_{name}": getattr(highway, name)
        for number, highway in enumerate(encoder.highways)
        for name in ("carry", "transform")
    }
    if encoder.projection is not None:
        linear["CNN_proj/{}_proj"] = encoder.projection
    for name, layer in linear.items():
        views |= {name.format("W"): [layer.weight.t()], name.format("b"): [layer.bias]}
    for direction, stack in enumerate(directions):
        for depth, lstm in enumerate(stack.layers):
            prefix = f"RNN_{direction}/RNN/MultiRNNCell/Cell{depth}/LSTMCell"
            views[f"{prefix}/W_0"] = [lstm.input_weight.t(), lstm.recurrent_weight.t()]
            views[f"{prefix}/B"] = [lstm.bias]
            if lstm.projection_weight is not None:
                views[f"{prefix}/W_P_0"] = [lstm.projection_weight.t()]
    return {name: [part.detach() for part in parts] for name, parts in views.items()}


def _arrays(encoder: TokenEncoder, directions: Sequence[LstmStack]) -> Iterator[tuple[str, np.ndarray]]:
    """Each dataset's name and its float32 values."""
    for name, views in _file_views(encoder, directions).items():
        yield name, torch.cat(views).float().cpu().numpy()


@contextlib.contextmanager
def _opened(path: str | Path) -> Iterator[h5py.File]:
    """The file, for a block of code. What h5py raises in it for a damaged file becomes a `WeightsError`."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except FileNotFoundError:
        reason = "no such file"
    except _DAMAGE as error:
        reason = "it is cut short" if "truncated" in str(error) else "it is not an HDF5 file, or damaged"
    else:
        return
    raise WeightsError(f"{path}: {reason}; expected a biLM's weights in bilm-tf's HDF5 layout") from None


def _check_names(file: h5py.File, expected: set[str], path: str | Path) -> None:
    """Checks that the file has every dataset that the options need, not behind a link, and no other layer."""
    found: set[str] = set()
    file.visititems(lambda name, item: found.add(name) if isinstance(item, h5py.Dataset) else None)
    missing = sorted(expected - found)
    if len(missing) == len(expected):
        held = some_of(sorted(file)) or "nothing"
        raise WeightsError(
            f"{path}: holds {held}; expected a biLM's weights in bilm-tf's layout: {_CHARACTERS}, CNN, RNN_0, ..."
        )
    if missing:
        raise WeightsError(f"{path}: {some_of(missing, 1)} missing; expected by the options")
    unknown = sorted(name for name in found - expected if name.startswith(_GROUPS))
    if unknown:
        raise WeightsError(
            f"{path}: holds {some_of(unknown, 1)}, which the options have no layer for; "
            "expected the options of these weights"
        )


def _values(file: h5py.File, name: str, path: str | Path) -> np.ndarray:
    """A dataset's values as float32 or float16."""
    try:
        values = file[name][...]
        if values.dtype != np.float16:
            values = values.astype(np.float32, copy=False)
    except OSError as error:
        raise WeightsError(f"{path}: {name} cannot be read, the file is damaged ({error})") from error
    if not np.isfinite(values).all():
        raise WeightsError(f"{path}: {name} holds values that are not finite; the file is damaged")
    return values
