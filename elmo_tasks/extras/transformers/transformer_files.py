"""Where a transformer is on disk, and how it is loaded without running code that is not of the library."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import safetensors.torch
from safetensors import SafetensorError

from elmo_tasks.elmo.bilm_files import FrozenFiles
from elmo_tasks.errors import ElmoTasksError, WeightsError, one_line
from elmo_tasks.files.downloads import HUB, hub_folder
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.paths import local_path
from elmo_tasks.modules.devices import shapes_only
from elmo_tasks.runs.frozen_models import FrozenModel

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"

_EXPECTED = f"expected a folder with a transformer's {CONFIG}, {WEIGHTS} and {TOKENIZER}"
_SIZES = ("hidden_size", "num_hidden_layers", "max_position_embeddings", "vocab_size")
_MOST_LAYERS = 1000
# Settings that name code or files elsewhere. Those that begin with "_" are the library's own.
_IGNORED = ("attn_implementation", "auto_map", "experts_implementation", "quantization_config", "use_kernels")


@dataclasses.dataclass(frozen=True)
class TransformerFiles(FrozenFiles):
    """The three files of a transformer, as the library `transformers` and the hub name them."""

    names: ClassVar[tuple[str, ...]] = (CONFIG, WEIGHTS, TOKENIZER)
    expected: ClassVar[str] = f"{_EXPECTED} (weights in pickles are not read)"
    folder: Path

    @classmethod
    def of(cls, model: str, *, local_only: bool = False) -> TransformerFiles:
        """The files of a folder, or of a model on the hub, which is downloaded once.

        Arguments:
            model: the folder, or `hub:NAME`, optionally with `@REVISION`.
            local_only: never downloads anything.

        Raises:
            WeightsError: there is no such folder, or no such model.
        """
        if model.startswith(HUB):
            expected = f"{_EXPECTED}, or a model on the hub that has them"
            return cls(hub_folder(model, cls.names, expected, local_only=local_only))
        if not (folder := local_path(model)).is_dir():
            found = "not a folder" if folder.exists() else "no such folder"
            raise WeightsError(f"{model}: {found}; {_EXPECTED}, or {HUB}NAME for a model on the hub")
        return cls(folder)

    @property
    def paths(self) -> dict[str, Path]:
        return {name: self.folder / name for name in self.names}

    @property
    def shown_path(self) -> Path:
        return self.folder

    def location(self) -> dict[str, str]:
        return {"model": str(self.folder)}

    def read_config(self) -> Any:
        """The library's config of the model.

        Raises:
            WeightsError: the file is missing or damaged, or the model is not an encoder of text.
            ElmoTasksError: the library is not installed.
        """
        path = self.folder / CONFIG
        values = read_json(path, dict[str, Any], "the config of a transformer", error=WeightsError)
        known = {name: value for name, value in values.items() if name not in _IGNORED and name[:1] != "_"}
        kind = known.pop("model_type", None)
        library = _library()
        if kind not in library.models.auto.configuration_auto.CONFIG_MAPPING:
            raise WeightsError(f"{path}: model_type: got {kind!r}; expected one that transformers has, such as 'bert'")
        try:
            config = library.AutoConfig.for_model(kind, **known)
        except Exception as error:  # the library's, of any class
            raise WeightsError(f"{path}: not the config of a transformer ({one_line(error)})") from None
        for name in _SIZES:
            size = getattr(config, name, None)
            if not isinstance(size, int) or size < 1:
                raise WeightsError(
                    f"{path}: {name}: got {size!r}; expected the size of an encoder of text, such as BERT"
                )
        if config.num_hidden_layers > _MOST_LAYERS:
            raise WeightsError(f"{path}: num_hidden_layers: got {config.num_hidden_layers}; at most {_MOST_LAYERS}")
        if config.is_encoder_decoder:
            raise WeightsError(f"{path}: a model with a decoder; expected an encoder, such as BERT")
        return config

    def load(self) -> tuple[Any, Any]:
        """The model, frozen, in float32 and on the CPU, and its tokenizer (a `tokenizers.Tokenizer`).

        The library only sees values that were read here, so it opens no other file and runs no code of the model's
        author.

        Raises:
            WeightsError: a file is missing or damaged, or they do not fit together.
            ElmoTasksError: the library is not installed.
        """
        config, path = self.read_config(), self.folder / WEIGHTS
        try:
            tensors = safetensors.torch.load_file(path)
        except (OSError, SafetensorError) as error:
            raise WeightsError(f"{path}: missing, or damaged ({one_line(error)})") from None
        library = _library()
        try:
            with shapes_only():  # takes no memory for sizes that the weights may not have
                empty = library.AutoModel.from_config(config)
            needed = sum(tensor.numel() for name, tensor in empty.named_parameters() if "pooler" not in name)
            if needed > (found := sum(tensor.numel() for tensor in tensors.values())):
                raise WeightsError(f"{path}: {found:,} numbers; {CONFIG} describes a model of {needed:,}")
            with _quiet(library):
                model, report = type(empty).from_pretrained(
                    None, config=config, state_dict=tensors, output_loading_info=True
                )
        except WeightsError:
            raise
        except Exception as error:  # the library's, of any class
            raise WeightsError(f"{path}: does not fit {CONFIG} ({one_line(error)})") from None
        # Heads that were saved without it have no pooler, which is not used here.
        if missing := sorted(str(name) for name in report["missing_keys"] if "pooler" not in str(name)):
            raise WeightsError(f"{path}: lacks {missing[0]} and perhaps more; expected the weights of {CONFIG}")
        from tokenizers import Tokenizer, pre_tokenizers

        path = self.folder / TOKENIZER
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises no other class
            raise WeightsError(f"{path}: missing, or not a tokenizer ({one_line(error)}); {_EXPECTED}") from None
        if (size := tokenizer.get_vocab_size()) > config.vocab_size:
            raise WeightsError(f"{path}: {size} word pieces; the model has {config.vocab_size}")
        tokenizer.no_truncation()
        tokenizer.no_padding()
        splitter = tokenizer.pre_tokenizer
        if isinstance(splitter, pre_tokenizers.ByteLevel):
            splitter.add_prefix_space = True  # a word is read as within a sentence
        return model.float().eval().requires_grad_(False), tokenizer


def _library() -> ModuleType:
    try:
        import transformers
    except ImportError:
        raise ElmoTasksError(
            "embedder.transformer needs the package transformers; install it with "
            "pip install 'elmo-tasks[transformers]'"
        ) from None
    return transformers


@contextlib.contextmanager
def _quiet(library: ModuleType) -> Iterator[None]:
    """Silences the library's progress bar and its report of tensors, which `load` checks."""
    logging = library.utils.logging
    level, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bar:
            logging.enable_progress_bar()


class RunTransformer(FrozenModel):
    """The transformer of a run."""

    title = "transformer"
    part = "transformer"
    locations = (("model",),)
    files_type = TransformerFiles
    lasting = f"{HUB}.*"

    @staticmethod
    def find(location: Mapping[str, str]) -> TransformerFiles:
        return TransformerFiles.of(location["model"], local_only=True)

    @staticmethod
    def load(files: FrozenFiles) -> object:
        return TransformerFiles(files.shown_path).load()
