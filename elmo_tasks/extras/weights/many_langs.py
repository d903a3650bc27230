"""BiLMs of ELMoForManyLangs, converted to the layout of this project, and their token layer, which looks tokens up.

config.json                            names the settings, a file such as cnn_50_100_512_4096_sample.json
char.dic, word.dic                     an item and its number on each line, with a tab between them
token_embedder.pkl, encoder.pkl        the weights, as pickled state dicts

# N tokens, P features of a token
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

import pydantic
import torch
from torch import Tensor, nn

from elmo_tasks.config import Config
from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.elmo.bilm_files import BiLMFormat
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.elmo.options import PUBLISHED_OPTIONS, VOCABULARY_FILE, BiLMOptions
from elmo_tasks.elmo.token_encoder import TOKENS_AT_ONCE, TokenEncoder
from elmo_tasks.errors import WeightsError, one_line
from elmo_tasks.extras.weights.allennlp_names import bilm_tensors
from elmo_tasks.extras.weights.foreign_files import read_pickled_tensors
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.cache import kept_hash, used_cache
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.text import read_lines
from elmo_tasks.modules.devices import shapes_only

TOKEN_WEIGHTS, LSTM_WEIGHTS = "token_embedder.pkl", "encoder.pkl"
WORDS, CHARACTERS, CONFIG = "word.dic", "char.dic", "config.json"
FILES = (CONFIG, "cnn_*.json", WORDS, CHARACTERS, TOKEN_WEIGHTS, LSTM_WEIGHTS)
UNKNOWN, PADDING, BEGIN_WORD, END_WORD = "<oov>", "<pad>", "<eow>", "<bow>"  # words begin with <eow> and end with <bow>
_BORDERS = {BEGIN_SENTENCE: "<bos>", END_SENTENCE: "<eos>"}
NEEDED_WORDS = (UNKNOWN,)
NEEDED_CHARACTERS = (UNKNOWN, PADDING, BEGIN_WORD, END_WORD, *_BORDERS.values())
# How names of tensors begin: ours, and AllenNLP's of parts in its form.
_NAMES = {
    "word_emb_layer.embedding.": "token_encoder.word_embedding.",
    "char_emb_layer.embedding.": "token_encoder.embedding.",
    "convolutions.": "_token_embedder.char_conv_",
    "highways.": "_token_embedder._highways.",
    "projection.": "_token_embedder._projection.",
}
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


class LexiconEncoder(TokenEncoder):
    """Maps tokens to vectors that depend on the token as a whole, if it is in a list of words, and on its spelling.

    Source: Che et al. 2018, and `ConvTokenEmbedder` and `create_one_batch` of ELMoForManyLangs, whose characters are
    those of Unicode, not bytes. The vector of the word and the values of the filters, after the highway layers, are
    projected together. Tokens are cut to the most characters of a token before they are looked up. `<S>` and `</S>` are
    the sentence borders, as for other biLMs, and so are `<bos>` and `<eos>`.

    The two lists are buffers, each the UTF-8 bytes of its items with line feeds between them, so that the weights never
    lose them.
    """

    first_row = 0

    def __init__(self, options: BiLMOptions) -> None:
        super().__init__(options)
        lexicon = options.lexicon
        assert lexicon is not None
        self.embedding = nn.Embedding(lexicon.num_characters, options.char_cnn.embedding.dim)
        self.word_embedding = nn.Embedding(lexicon.num_words, lexicon.word_dim)
        self.projection: nn.Linear = nn.Linear(
            lexicon.word_dim + options.char_cnn.num_filters, options.lstm.projection_dim
        )
        self.words: Tensor
        self.characters: Tensor
        self.register_buffer("words", torch.zeros(lexicon.word_bytes, dtype=torch.uint8))
        self.register_buffer("characters", torch.zeros(lexicon.character_bytes, dtype=torch.uint8))
        self._numbers: tuple[dict[str, int], dict[str, int]] | None = None

    def forward(self, character_ids: Tensor) -> Tensor:
        """Refuses character ids, from which the words cannot be known.

        Raises:
            ValueError: always.
        """
        raise ValueError("this biLM looks words up in a list; expected tokens, as for `BiLM.layers`, not character ids")

    def of_tokens(self, tokens: Sequence[str | bytes]) -> Tensor:
        words, characters = self.numbers()
        rows, spellings = [], []
        for given in map(str, tokens):
            token = _BORDERS.get(given, given[: self.max_characters - 2])
            letters = [token] if token in _BORDERS.values() else token
            spelled = [characters.get(letter, characters[UNKNOWN]) for letter in letters]
            ids = [characters[BEGIN_WORD], *spelled, characters[END_WORD]]
            rows.append(words.get(token, words[UNKNOWN]))
            spellings.append(ids + [characters[PADDING]] * (self.max_characters - len(ids)))
        device = self.embedding.weight.device
        blocks = [torch.tensor(ids, device=device).split(TOKENS_AT_ONCE) for ids in (rows, spellings)]
        vectors = []
        for known, spelled_as in zip(*blocks, strict=True):
            parts = [self.word_embedding(known), self.filters(spelled_as, characters[PADDING])]
            vectors.append(self.projection(torch.cat(parts, dim=1)))
        return torch.cat(vectors)  # (N, P)

    def own_tensors(self) -> dict[str, Tensor]:
        return {"word_embed": self.word_embedding.weight, "words": self.words, "characters": self.characters}

    def numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        """The row of each word, and of each character, in its table."""
        if self._numbers is None:
            self._numbers = _numbered(self.words), _numbered(self.characters)
        return self._numbers

    def _load_from_state_dict(self, *arguments: Any) -> None:
        """What `load_state_dict` calls: the lists change."""
        self._numbers = None
        super()._load_from_state_dict(*arguments)


def as_bytes(items: Sequence[str]) -> Tensor:
    """A list of strings without line feeds as the buffers have it."""
    return torch.frombuffer(bytearray("\n".join(items).encode()), dtype=torch.uint8)


def _numbered(content: Tensor) -> dict[str, int]:
    """The number of each item of a list that `as_bytes` has made. Numbers without an item have an empty one."""
    items = content.cpu().numpy().tobytes().decode().split("\n")
    return {item: number for number, item in enumerate(items) if item}


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
    tensors: dict[str, Tensor] = {}
    for name, tensor in read_pickled_tensors(folder / TOKEN_WEIGHTS, WeightsError).items():
        start = next((each for each in _NAMES if name.startswith(each)), "")
        tensors[_NAMES.get(start, "") + name.removeprefix(start)] = tensor.float()
    for name, tensor in read_pickled_tensors(folder / LSTM_WEIGHTS, WeightsError).items():
        tensors[f"_elmo_lstm.{name}"] = tensor.float()
    tables = [tensors.get(f"token_encoder.{name}.weight") for name in ("word_embedding", "embedding")]
    rows = [len(table) if table is not None and table.dim() else 0 for table in tables]
    words = _read_list(folder / WORDS, rows[0], NEEDED_WORDS)
    characters = _read_list(folder / CHARACTERS, rows[1], NEEDED_CHARACTERS)
    options = _options(settings, path, words, characters)
    tensors |= {"token_encoder.words": as_bytes(words), "token_encoder.characters": as_bytes(characters)}
    with shapes_only():
        bilm = BiLM(options)
    try:
        bilm.load_state_dict(bilm_tensors(tensors), assign=True)
    except RuntimeError as error:
        raise WeightsError(f"{folder}: the weights do not fit {path.name} ({one_line(error)})") from None
    bilm.save(target / "options.json", target / "weights.hdf5")
    (target / VOCABULARY_FILE).write_bytes(tensors["token_encoder.words"].numpy().tobytes())


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
