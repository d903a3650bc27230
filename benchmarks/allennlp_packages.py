"""Imports AllenNLP 0.9 or 2.10 from a checkout, with current versions of its dependencies.

AllenNLP imports many packages that its models do not use. Those that are not installed are replaced by empty packages.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

_NOT_NEEDED = (
    "_jsonnet", "base58", "boto3", "botocore", "cached_path", "checklist", "conllu", "dill", "editdistance",
    "fairscale", "flaky", "flask", "flask_cors", "ftfy", "gevent", "jsonpickle", "lmdb", "matplotlib",
    "more_itertools", "nltk", "overrides", "parsimonious", "py_rouge", "pytorch_pretrained_bert",
    "pytorch_transformers", "pytz", "requests", "responses", "rouge", "sacremoses", "six", "sklearn", "spacy",
    "sqlparse", "tensorboardX", "termcolor", "torchvision", "transformers", "unidecode", "wandb", "word2number",
)  # fmt: skip
_GONE_FROM_HUGGINGFACE_HUB = ("HfFolder", "Repository")
# Packages of 0.9 that import all of their modules, among them some that need packages of that time.
_LARGE = (
    "models", "models.coreference_resolution", "models.reading_comprehension", "data.dataset_readers", "predictors",
    "training",
)  # fmt: skip


def import_allennlp(checkout: Path, module: str) -> Any:
    """A module of AllenNLP, such as `allennlp.modules.elmo`. A process can only import from one checkout.

    Arguments:
        checkout: the folder that holds the packages `allennlp` and, of 2.10, `allennlp_models`.
    """
    if not (checkout / "allennlp" / "modules" / "elmo.py").is_file():
        raise SystemExit(f"{checkout}: not a checkout of AllenNLP: allennlp/modules/elmo.py is missing")
    if "allennlp" not in sys.modules:
        _prepare(checkout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module)


def is_old(checkout: Path) -> bool:
    """Whether a checkout is of 0.x, whose models are not a package of their own."""
    return (checkout / "allennlp" / "models" / "esim.py").is_file()


def _prepare(checkout: Path) -> None:
    absent = {name for name in _NOT_NEEDED if importlib.util.find_spec(name) is None}
    if "transformers" not in absent:
        _prepare_transformers()
    sys.meta_path.insert(0, _EmptyPackages(absent))
    hub = importlib.import_module("huggingface_hub")
    for name in _GONE_FROM_HUGGINGFACE_HUB:
        if not hasattr(hub, name):
            setattr(hub, name, None)
    if "cached_path" in absent:  # as it does for local files
        cached_path: Any = importlib.import_module("cached_path")
        cached_path.cached_path = lambda path, *_, **__: path
        cached_path.FileLock = contextlib.nullcontext
    if "base58" in absent:
        base58: Any = importlib.import_module("base58")
        base58.b58encode = lambda digest: digest.hex().encode()
    if "overrides" in absent:
        overrides: Any = importlib.import_module("overrides")
        overrides.overrides = lambda function: function
    for name in ("bool", "float", "int", "object"):  # which NumPy had until 1.24
        if name not in np.__dict__:
            setattr(np, name, getattr(builtins, name))
    sys.path.insert(0, str(checkout))
    if is_old(checkout):
        if "pytorch_pretrained_bert" in absent and "transformers" not in absent:
            _prepare_old_bert()
        importlib.import_module("allennlp")
        for name in _LARGE:
            package = types.ModuleType(f"allennlp.{name}")
            package.__path__ = [str(checkout / "allennlp" / Path(*name.split(".")))]
            sys.modules[package.__name__] = package


def _prepare_transformers() -> None:
    """Adds the names to the installed library that AllenNLP imports from an older version of it."""
    lazy = importlib.import_module("transformers.utils.import_utils")._LazyModule
    found = lazy.__getattr__
    gone = {name: type(name, (), {}) for name in ("AdamW", "Adafactor")}
    lazy.__getattr__ = lambda module, name: gone[name] if name in gone else found(module, name)
    tokenizers: Any = importlib.import_module("transformers.models.auto.tokenization_auto").AutoTokenizer
    load = tokenizers.from_pretrained
    # An argument without effect then, which is not taken now.
    tokenizers.from_pretrained = lambda name, add_special_tokens=True, **settings: load(name, **settings)
    base: Any = importlib.import_module("transformers").PreTrainedTokenizerBase
    base.encode_plus = base.__call__
    base.build_inputs_with_special_tokens = _with_special_pieces


def _prepare_old_bert() -> None:
    """`pytorch_pretrained_bert` of AllenNLP 0.9, by the library of today."""
    from transformers import BertModel as NewBertModel

    class BertModel(NewBertModel):
        def forward(
            self, input_ids: Any, token_type_ids: Any = None, attention_mask: Any = None, **_: Any
        ) -> tuple[Any, Any]:
            output = super().forward(input_ids, attention_mask, token_type_ids)
            return output.last_hidden_state, output.pooler_output

    package: Any = importlib.import_module("pytorch_pretrained_bert.modeling")
    package.BertModel = BertModel
    tokenization: Any = importlib.import_module("pytorch_pretrained_bert.tokenization")
    tokenization.BertTokenizer = old_bert_tokenizer()


def old_bert_tokenizer() -> Any:
    """The tokenizer of BERT with the attributes that AllenNLP's reader of semantic roles needs."""
    return importlib.import_module("transformers.models.bert.tokenization_bert_legacy").BertTokenizerLegacy


def _with_special_pieces(tokenizer: Any, ids: list[int]) -> list[int]:
    """The ids of word pieces, with the special ones around them."""
    (own,), whole = tokenizer.encode("a", add_special_tokens=False), tokenizer.encode("a")
    place = whole.index(own)
    return [*whole[:place], *ids, *whole[place + 1 :]]


class _EmptyType(type):
    """The type of empty classes, whose attributes are their names."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _EmptyPackage(types.ModuleType):
    """A package in which every name is an empty class."""

    __path__: ClassVar[list[str]] = []  # type: ignore[misc]

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _EmptyType(name, (), {"__module__": self.__name__})


class _EmptyPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty packages of the given names and any modules within them."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _EmptyPackage(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leaves the module empty."""
