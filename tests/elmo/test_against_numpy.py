"""The biLM against a reference in plain NumPy float64, written from the equations and the weights file alone."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmo_tasks.elmo import PUBLISHED_OPTIONS, BiLM, BiLMOptions, FastBiLM
from elmo_tasks.elmo.bilm_files import BiLMFiles
from tests.random_bilm import random_bilm

SENTENCES = [
    ["Ten", "quick", "zebras", "ran", "over", "the", "old", "wooden", "bridge", "."],
    ["Überraschung", "!"],
    [],
    ["The", "bridge", "fell"],
    ["x" * 30, "y" * 60, "é", ""],
]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class NumpyBilm:
    """One token and one sentence at a time, no batches, no tricks. Counts how often each clip bites."""

    def __init__(self, options: Path, weights: Path) -> None:
        self.options = json.loads(options.read_text())
        self.weights: dict[str, np.ndarray] = {}
        with h5py.File(weights) as file:
            file.visititems(self._keep)
        self.clipped = {"cell": 0, "projection": 0}

    def _keep(self, name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            self.weights[name] = item[...].astype(np.float64)

    def layers(self, tokens: list[str]) -> np.ndarray:
        """(L+1, T, D)"""
        vectors = [self.token_vector(codes) for codes in self.codes(tokens)]
        forward = self.direction(0, vectors)
        backward = [layer[::-1] for layer in self.direction(1, vectors[::-1])]
        pairs = zip([vectors, *forward], [vectors, *backward], strict=True)
        return np.array([np.concatenate(pair, axis=1)[1:-1] for pair in pairs])

    def codes(self, tokens: list[str]) -> list[list[int]]:
        inner = [[256], *(list(token.encode()) for token in tokens), [257]]
        width = self.options["char_cnn"]["max_characters_per_token"]
        words = [[258, *codes[: width - 2], 259] for codes in inner]
        return [word + [260] * (width - len(word)) for word in words]

    def token_vector(self, codes: list[int]) -> np.ndarray:
        cnn = self.options["char_cnn"]
        characters = self.weights["char_embed"][codes]
        maxima = []
        for number, (width, _) in enumerate(cnn["filters"]):
            kernel, bias = self.weights[f"CNN/W_cnn_{number}"][0], self.weights[f"CNN/b_cnn_{number}"]
            windows = np.array([characters[start : start + width] for start in range(len(codes) - width + 1)])
            maxima.append((np.tensordot(windows, kernel, axes=2) + bias).max(axis=0))
        vector = np.concatenate(maxima)
        vector = np.tanh(vector) if cnn["activation"] == "tanh" else np.maximum(vector, 0)
        for number in range(cnn["n_highway"]):
            get = {name: self.weights[f"CNN_high_{number}/{name}"] for name in ("W_carry", "W_transform")}
            carry = sigmoid(vector @ get["W_carry"] + self.weights[f"CNN_high_{number}/b_carry"])
            transform = np.maximum(vector @ get["W_transform"] + self.weights[f"CNN_high_{number}/b_transform"], 0)
            vector = carry * transform + (1 - carry) * vector
        if "CNN_proj/W_proj" in self.weights:
            vector = vector @ self.weights["CNN_proj/W_proj"] + self.weights["CNN_proj/b_proj"]
        return vector

    def direction(self, direction: int, inputs: list[np.ndarray]) -> list[list[np.ndarray]]:
        layers = []
        for depth in range(self.options["lstm"]["n_layers"]):
            outputs = self.lstm(f"RNN_{direction}/RNN/MultiRNNCell/Cell{depth}/LSTMCell/", inputs)
            if depth > 0 and self.options["lstm"]["use_skip_connections"]:
                outputs = [output + given for output, given in zip(outputs, inputs, strict=True)]
            layers.append(outputs)
            inputs = outputs
        return layers

    def lstm(self, prefix: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        kernel, bias, projection = (self.weights.get(prefix + name) for name in ("W_0", "B", "W_P_0"))
        assert kernel is not None
        assert bias is not None
        settings = self.options["lstm"]
        cell, hidden = np.zeros(settings["dim"]), np.zeros(settings["projection_dim"])
        outputs = []
        for vector in inputs:
            i, j, f, o = np.split(np.concatenate([vector, hidden]) @ kernel + bias, 4)
            cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(j)
            cell = self.clip("cell", cell, settings.get("cell_clip"))
            hidden = sigmoid(o) * np.tanh(cell)
            if projection is not None:
                hidden = self.clip("projection", hidden @ projection, settings.get("proj_clip"))
            outputs.append(hidden)
        return outputs

    def clip(self, what: str, values: np.ndarray, bound: float | None) -> np.ndarray:
        if bound is None:
            return values
        self.clipped[what] += int((np.abs(values) > bound).sum())
        return np.clip(values, -bound, bound)


def _largest_difference(bilm: BiLM, reference: NumpyBilm) -> float:
    """Between the reference and both ways to compute layers."""
    differences = []
    outputs = [bilm.layers(SENTENCES), FastBiLM(bilm).layers(SENTENCES)]
    for row, tokens in enumerate(SENTENCES):
        if tokens:
            expected = reference.layers(tokens)
            ours = [output.layers[row, :, : len(tokens)].double().numpy() for output in outputs]
            differences += [float(np.abs(layers - expected).max()) for layers in ours]
    return max(differences)


@pytest.mark.parametrize("size", ["small", pytest.param("original", marks=pytest.mark.slow)])
def test_published_sizes_with_clips_that_bite(tmp_path: Path, size: str) -> None:
    paths = tmp_path / "options.json", tmp_path / "weights.hdf5"
    random_bilm(PUBLISHED_OPTIONS[size], seed=11, scale=1.5).save(*paths)
    reference = NumpyBilm(*paths)
    assert _largest_difference(BiLM.load(*paths), reference) < 5e-5
    assert reference.clipped["cell"] > 1000
    assert reference.clipped["projection"] > 50


LSTM_CHANGES: list[dict[str, Any]] = [
    {"cell_clip": None},
    {"proj_clip": None},
    {"cell_clip": None, "proj_clip": None},
    {"use_skip_connections": False},
    {"use_skip_connections": False, "n_layers": 3},
    {"n_layers": 1},
    {"n_layers": 4},
    {"dim": 6},  # no projection
]
CNN_CHANGES: list[dict[str, Any]] = [
    {"n_highway": 0},
    {"n_highway": 3},
    {"activation": "tanh"},
    {"activation": "tanh", "n_highway": 0},
    {"filters": ((1, 2), (3, 4))},  # no projection of the filters
    {"filters": ((2, 4), (1, 2))},
    {"filters": ((1, 5), (3, 7)), "activation": "tanh"},
    {"max_characters_per_token": 9},
    {"n_characters": 261},
]


@pytest.mark.parametrize(
    ("part", "change"),
    [("lstm", change) for change in LSTM_CHANGES] + [("char_cnn", change) for change in CNN_CHANGES],
    ids=str,
)
def test_every_kind_of_architecture(tmp_path: Path, options: BiLMOptions, part: str, change: dict[str, Any]) -> None:
    changed = getattr(options, part).model_copy(update=change)
    paths = tmp_path / "options.json", tmp_path / "weights.hdf5"
    random_bilm(options.model_copy(update={part: changed}), seed=5, scale=1.2).save(*paths)
    assert _largest_difference(BiLM.load(*paths), NumpyBilm(*paths)) < 1e-5


def test_the_default_bilm_is_small_and_read_alike() -> None:
    files = BiLMFiles.in_folder("default")
    assert files.weights.stat().st_size < 30_000_000
    assert _largest_difference(BiLM.load(files.options, files.weights), NumpyBilm(files.options, files.weights)) < 5e-5
