"""Small archives in AllenNLP's format, with random weights under the names that AllenNLP gives them."""

from __future__ import annotations

import copy
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.elmo import BiLM, BiLMOptions
from tests.random_bilm import random_bilm

OPTIONS = BiLMOptions.model_validate_json(
    """{"lstm": {"dim": 12, "projection_dim": 4, "n_layers": 2, "cell_clip": 3.0, "proj_clip": 3.0,
                 "use_skip_connections": true},
        "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 5], [3, 6]], "activation": "relu", "n_highway": 2}}"""
)
WORDS = ("@@UNKNOWN@@", "the", "dog", "lives", "-lrb-", "in", "seattle", ".")
CHARACTERS = ("@@UNKNOWN@@", *"etaoinshrd.S")
TAGS = ("O", "B-PER", "I-PER", "L-PER", "U-PER", "U-LOC", "B-LOC", "L-LOC", "I-LOC")
HIDDEN = 5
GONE = object()


def member(name: str, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info, content


def saved(value: Any, *, new_format: bool = True) -> bytes:
    """The bytes of `torch.save`, also in the format before torch 1.6."""
    stream = io.BytesIO()
    torch.save(value, stream, _use_new_zipfile_serialization=new_format)
    return stream.getvalue()


def files_of(
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    vocabulary: Mapping[str, Sequence[str]],
    *,
    new_format: bool = True,
) -> dict[str, bytes]:
    """The files of an archive by their names."""
    return {
        "config.json": json.dumps(config).encode(),
        "weights.th": saved(dict(tensors), new_format=new_format),
        "vocabulary/non_padded_namespaces.txt": b"*tags\n*labels\n",
        **{f"vocabulary/{name}.txt": "\n".join([*names, ""]).encode() for name, names in vocabulary.items()},
    }


def write_archive(
    path: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    vocabulary: Mapping[str, Sequence[str]],
    *,
    new_format: bool = True,
    more: Sequence[tuple[tarfile.TarInfo, bytes]] = (),
) -> Path:
    """Writes `model.tar.gz` as AllenNLP does; `more` are members in addition."""
    with tarfile.open(path, "w:gz") as tar:
        folder = tarfile.TarInfo("vocabulary")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        files = files_of(config, tensors, vocabulary, new_format=new_format)
        for info, content in (*(member(name, content) for name, content in files.items()), *more):
            tar.addfile(info, io.BytesIO(content))
    return path


ELMO = {"do_layer_norm": False, "projection_dim": None, "num_output_representations": 1, "requires_grad": False}
NER: dict[str, Any] = {
    "dataset_reader": {
        "type": "conll2003",
        "tag_label": "ner",
        "coding_scheme": "BIOUL",
        "feature_labels": ["pos"],
        "label_namespace": "labels",
        "convert_to_coding_scheme": None,
        "token_indexers": {
            "tokens": {"type": "single_id", "lowercase_tokens": True},
            "token_characters": {"type": "characters", "min_padding_length": 3},
            "elmo": {"type": "elmo_characters", "namespace": "elmo_characters"},
        },
    },
    "train_data_path": "train.txt",
    "validation_data_path": "dev.txt",
    "model": {
        "type": "crf_tagger",
        "label_encoding": "BIOUL",
        "dropout": 0.5,
        "include_start_end_transitions": False,
        "text_field_embedder": {
            "token_embedders": {
                "tokens": {"type": "embedding", "embedding_dim": 6, "trainable": True, "pretrained_file": "glove.gz"},
                "elmo": {"type": "elmo_token_embedder", "options_file": "https://x", "dropout": 0.2, **ELMO},
                "token_characters": {
                    "type": "character_encoding",
                    "embedding": {"embedding_dim": 3},
                    "encoder": {"type": "cnn", "embedding_dim": 3, "num_filters": 7, "ngram_filter_sizes": [3]},
                },
            }
        },
        "encoder": {"type": "lstm", "input_size": 21, "hidden_size": HIDDEN, "num_layers": 2, "bidirectional": True},
        "regularizer": [["scalar_parameters", {"type": "l2", "alpha": 0.1}]],
    },
    "iterator": {"type": "basic", "batch_size": 64, "cache_instances": True},
    "trainer": {
        "optimizer": {"type": "adam", "lr": 0.002},
        "validation_metric": "+f1-measure-overall",
        "num_serialized_models_to_keep": 3,
        "num_epochs": 75,
        "grad_norm": 5.0,
        "patience": 25,
        "cuda_device": 0,
    },
}
VOCABULARY = {"tokens": WORDS, "token_characters": CHARACTERS, "labels": TAGS}


def with_changes(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a config with other values, which are named by their key paths; `GONE` removes a key."""
    changed = copy.deepcopy(dict(config))
    for path, value in changes.items():
        *parents, key = path.split(".")
        part = changed
        for parent in parents:
            part = part[parent]
        part[key] = value
        if value is GONE:
            del part[key]
    return changed


def bilm() -> BiLM:
    return random_bilm(OPTIONS, seed=4)


def ner_tensors() -> dict[str, Tensor]:
    """The tensors of `NER`: words and characters have a row for padding before those of their names."""
    torch.manual_seed(6)
    embedder = "text_field_embedder.token_embedder"
    convolution = nn.Conv1d(3, 7, 3)
    lstm = nn.LSTM(21, HIDDEN, 2, bidirectional=True)
    size = len(TAGS)
    return {
        f"{embedder}_tokens.weight": torch.randn(len(WORDS) + 1, 6),
        f"{embedder}_token_characters._embedding._module.weight": torch.randn(len(CHARACTERS) + 1, 3),
        f"{embedder}_token_characters._encoder._module.conv_layer_0.weight": convolution.weight.detach(),
        f"{embedder}_token_characters._encoder._module.conv_layer_0.bias": torch.randn(7),
        **{f"{embedder}_elmo._elmo.{name}": tensor for name, tensor in elmo_tensors(bilm()).items()},
        **{f"encoder._module.{name}": tensor for name, tensor in lstm.state_dict().items()},
        "tag_projection_layer._module.weight": torch.randn(size, 2 * HIDDEN),
        "tag_projection_layer._module.bias": torch.randn(size),
        "crf.transitions": torch.randn(size, size),
    }


def elmo_tensors(bilm: BiLM, mixes: int = 1) -> dict[str, Tensor]:
    """The state dict of an AllenNLP `Elmo` with this biLM."""
    state = bilm.state_dict()
    encoder = {name.removeprefix("token_encoder."): each for name, each in state.items()}
    tensors = {"_token_embedder._char_embedding_weights": encoder["embedding.weight"]}
    for number in range(len(bilm.options.char_cnn.filters)):
        for name in ("weight", "bias"):
            tensors[f"_token_embedder.char_conv_{number}.{name}"] = encoder[f"convolutions.{number}.{name}"]
    for number in range(bilm.options.char_cnn.n_highway):
        for name in ("weight", "bias"):
            parts = encoder[f"highways.{number}.transform.{name}"], -encoder[f"highways.{number}.carry.{name}"]
            tensors[f"_token_embedder._highways._layers.{number}.{name}"] = torch.cat(parts)
    for name in ("weight", "bias"):
        tensors[f"_token_embedder._projection.{name}"] = encoder[f"projection.{name}"]
    for number, direction in enumerate(("forward", "backward")):
        for layer in range(bilm.options.lstm.n_layers):
            ours, theirs = f"directions.{number}.layers.{layer}.", f"_elmo_lstm.{direction}_layer_{layer}."
            bias = _gates(state[f"{ours}bias"])
            bias.chunk(4)[1].add_(1.0)  # the forget gate's constant
            tensors[f"{theirs}input_linearity.weight"] = _gates(state[f"{ours}input_weight"])
            tensors[f"{theirs}state_linearity.weight"] = _gates(state[f"{ours}recurrent_weight"])
            tensors[f"{theirs}state_linearity.bias"] = bias
            tensors[f"{theirs}state_projection.weight"] = state[f"{ours}projection_weight"]
    tensors = {f"_elmo_lstm.{name}": tensor for name, tensor in tensors.items()}
    for mix in range(mixes):
        tensors[f"scalar_mix_{mix}.gamma"] = torch.tensor([1.5 + mix])
        for layer in range(bilm.num_layers):
            tensors[f"scalar_mix_{mix}.scalar_parameters.{layer}"] = torch.randn(1)
    return tensors


def _gates(tensor: Tensor) -> Tensor:
    """Input, candidate, forget, output here; input, forget, candidate, output there."""
    enter, candidate, forget, leave = tensor.chunk(4)
    return torch.cat([enter, forget, candidate, leave])
