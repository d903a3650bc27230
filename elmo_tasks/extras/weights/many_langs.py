"""BiLMs of ELMoForManyLangs, converted to the layout of this project.

config.json                            names the settings, a file such as cnn_50_100_512_4096_sample.json
char.dic, word.dic                     an item and its number on each line, with a tab between them
token_embedder.pkl, encoder.pkl        the weights, as pickled state dicts
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

import pydantic
from torch import Tensor, nn

from elmo_tasks.config import Config
from elmo_tasks.elmo import weights as weights_file
from elmo_tasks.elmo.bilm_files import BiLMFormat
from elmo_tasks.elmo.lstm import LstmStack
from elmo_tasks.elmo.options import PUBLISHED_OPTIONS, VOCABULARY_FILE, BiLMOptions
from elmo_tasks.errors import WeightsError, one_line
from elmo_tasks.extras.weights.allennlp_names import bilm_tensors
from elmo_tasks.extras.weights.foreign_files import read_pickled_tensors
from elmo_tasks.extras.weights.lexicon import NEEDED_CHARACTERS, NEEDED_WORDS, LexiconEncoder, as_bytes
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.cache import kept_hash, used_cache
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.text import read_lines
from elmo_tasks.modules.devices import shapes_only

TOKEN_WEIGHTS, LSTM_WEIGHTS = "token_embedder.pkl", "encoder.pkl"
WORDS, CHARACTERS, CONFIG = "word.dic", "char.dic", "config.json"
FILES = (CONFIG, "cnn_*.json", WORDS, CHARACTERS, TOKEN_WEIGHTS, LSTM_WEIGHTS)
_VERSION = b"1"  # of the conversion
_NO_ITEM = "\u3000"  # what a line without an item, whose item was white space, stands for

# Files of the published models, some of which come without them.
_PUBLISHED_NAME = "cnn_50_100_512_4096_sample.json"
_PUBLISHED = {
    "encoder": {"name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": PUBLISHED_OPTIONS["original"].char_cnn.filters,
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}


class _Settings(Config):
    """What a model is like. Its values become `BiLMOptions`, which checks them."""

    model_config = pydantic.ConfigDict(extra="ignore")
    encoder: dict[str, Any]
    token_embedder: dict[str, Any]


class _NamedSettings(Config):
    model_config = pydantic.ConfigDict(extra="ignore")
    config_path: str


def converted(folder: Path) -> Path:
    """The folder in the cache with an options.json and a weights.hdf5, which are made once.

    Raises:
        WeightsError: a file is missing or damaged, holds code, or does not fit the others.
    """
    settings, path = _read_settings(folder)
    files = [folder / name for name in (WORDS, CHARACTERS, TOKEN_WEIGHTS, LSTM_WEIGHTS)]
    for file in files:
        if not file.is_file():
            raise WeightsError(f"{file}: no such file; expected a whole biLM of ELMoForManyLangs")
    parts = [_VERSION, settings.model_dump_json().encode(), *(kept_hash(file).encode() for file in files)]
    target = used_cache("archives") / hashlib.sha256(b"\n".join(parts)).hexdigest()
    if not target.is_dir():
        with atomic_folder(target) as new:
            _convert(settings, path, folder, new)
    return target


MANY_LANGS = BiLMFormat(FILES, lambda path: (path / TOKEN_WEIGHTS).is_file(), converted)


def _read_settings(folder: Path) -> tuple[_Settings, Path]:
    """The settings that a model names, from a file of its folder, and the path to name in messages."""
    config = folder / CONFIG
    named = read_json(config, _NamedSettings, "the config of a biLM of ELMoForManyLangs", error=WeightsError)
    name = PureWindowsPath(named.config_path).name  # often a path of the machine where the model was trained
    for path in (folder / name, folder / "configs" / name):
        if path.is_file():
            return read_json(path, _Settings, "the settings of a biLM of ELMoForManyLangs", error=WeightsError), path
    if name == _PUBLISHED_NAME:
        return _Settings.model_validate(_PUBLISHED), config
    raise WeightsError(f"{config}: names the settings {name!r}, which are not in {folder}; expected the file there")


def _convert(settings: _Settings, path: Path, folder: Path, target: Path) -> None:
    # All weights, those of the LSTMs and of the convolutions under AllenNLP's names, whose forms they have.
    names = {"convolutions.": "char_conv_", "highways.": "_highways.", "projection.": "_projection."}
    tensors: dict[str, Tensor] = {}
    for name, tensor in read_pickled_tensors(folder / TOKEN_WEIGHTS, WeightsError).items():
        start = next((ours for ours in names if name.startswith(ours)), None)
        key = name if start is None else f"_token_embedder.{names[start]}{name.removeprefix(start)}"
        tensors[key] = tensor.float()
    for name, tensor in read_pickled_tensors(folder / LSTM_WEIGHTS, WeightsError).items():
        tensors[f"_elmo_lstm.{name}"] = tensor.float()
    tables = [tensors.get(f"{kind}_emb_layer.embedding.weight") for kind in ("word", "char")]
    rows = [len(table) if table is not None and table.dim() else 0 for table in tables]
    words = _read_list(folder / WORDS, rows[0], NEEDED_WORDS)
    characters = _read_list(folder / CHARACTERS, rows[1], NEEDED_CHARACTERS)
    options = _options(settings, path, words, characters)
    with shapes_only():
        encoder = LexiconEncoder(options)
        directions = nn.ModuleList(LstmStack(options.lstm) for _ in range(2))
    model = nn.ModuleDict({"token_encoder": encoder, "directions": directions})
    for table, name in (("word", "word_embedding"), ("char", "embedding")):
        if (rows_of_table := tensors.pop(f"{table}_emb_layer.embedding.weight", None)) is not None:
            tensors[f"token_encoder.{name}.weight"] = rows_of_table
    lists = {"words": as_bytes(words), "characters": as_bytes(characters)}
    tensors |= {f"token_encoder.{name}": items for name, items in lists.items()}
    try:
        model.load_state_dict(bilm_tensors(tensors), assign=True)
    except RuntimeError as error:
        raise WeightsError(f"{folder}: the weights do not fit {path.name} ({one_line(error)})") from None
    weights_file.write_weights(target / "weights.hdf5", encoder, list(directions))  # type: ignore[arg-type]
    options.save(target / "options.json")
    (target / VOCABULARY_FILE).write_bytes(lists["words"].numpy().tobytes())


def _options(settings: _Settings, path: Path, words: Sequence[str], characters: Sequence[str]) -> BiLMOptions:
    encoder, cnn = settings.encoder, settings.token_embedder
    for key, found, expected in (("encoder", encoder, "elmo"), ("token_embedder", cnn, "cnn")):
        if found.get("name") != expected:
            raise WeightsError(f"{path}: {key}.name is {found.get('name')!r}; expected {expected!r}")
    values: dict[str, Any] = {
        "lstm": {
            **{name: encoder.get(name) for name in ("dim", "projection_dim", "n_layers")},
            **{name: encoder.get(name) or None for name in ("cell_clip", "proj_clip")},  # 0 is none
            "use_skip_connections": True,
        },
        "char_cnn": {
            **{name: cnn.get(name) for name in ("activation", "filters", "n_highway", "max_characters_per_token")},
            "embedding": {"dim": cnn.get("char_dim")},
        },
        "lexicon": {
            "num_words": len(words),
            "word_dim": cnn.get("word_dim"),
            "word_bytes": len(as_bytes(words)),
            "num_characters": len(characters),
            "character_bytes": len(as_bytes(characters)),
        },
    }
    try:
        return BiLMOptions.model_validate_json(json.dumps(values))
    except pydantic.ValidationError as error:
        raise WeightsError(f"{path}: {one_line(error)}") from None


def _read_list(path: Path, size: int, needed: Sequence[str]) -> list[str]:
    """The items of a list by their numbers, below `size`; numbers without an item have an empty one."""
    items = [""] * size
    for number, line in read_lines(path):
        item, _, index = line.strip().rpartition("\t")
        if not re.fullmatch("[0-9]{1,9}", index) or int(index) >= size:
            raise WeightsError(
                f"{path}:{number}: {line.strip()[:80]!r}; expected an item, a tab and a number below {size}"
            )
        items[int(index)] = item or _NO_ITEM
    if absent := sorted(set(needed).difference(items)):
        raise WeightsError(f"{path}: has no {', '.join(absent)}; expected a list of ELMoForManyLangs")
    return items
