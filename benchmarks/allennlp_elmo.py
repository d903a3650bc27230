"""Runs AllenNLP's `Elmo` from a checkout of AllenNLP 2.10.1, with current versions of its dependencies.

AllenNLP imports many packages that `Elmo` does not use. Those that are not installed are replaced by empty packages.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

_NOT_NEEDED = (
    "base58", "boto3", "botocore", "cached_path", "checklist", "dill", "fairscale", "lmdb", "more_itertools",
    "requests", "sacremoses", "spacy", "tensorboardX", "termcolor", "torchvision", "transformers", "wandb",
)  # fmt: skip
_GONE_FROM_HUGGINGFACE_HUB = ("HfFolder", "Repository")


class AllenNlpElmo:
    """Computes one representation of sentences, without gradients.

    Arguments:
        checkout: the folder that holds AllenNLP's `allennlp` package.
        options: the path of the biLM's options.json.
        weights: the path of its HDF5 weights.
    """

    def __init__(self, checkout: Path, options: Path, weights: Path) -> None:
        self._module = _import_elmo(checkout)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._elmo = self._module.Elmo(str(options), str(weights), 1, dropout=0.0).eval()

    @torch.no_grad()
    def __call__(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """(B, T, D)"""
        return self._elmo(self._module.batch_to_ids(sentences))["elmo_representations"][0]

    @torch.no_grad()
    def layers(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """(B, L+1, T, D), computed from a fresh state: AllenNLP would carry its state from batch to batch."""
        bilm = self._elmo._elmo_lstm
        bilm._elmo_lstm.reset_states()
        output = bilm(self._module.batch_to_ids(sentences))
        bilm._elmo_lstm.reset_states()
        return torch.stack([layer[:, 1:-1] for layer in output["activations"]], dim=1)


def _import_elmo(checkout: Path) -> Any:
    if not (checkout / "allennlp" / "modules" / "elmo.py").is_file():
        raise SystemExit(f"{checkout}: not a checkout of AllenNLP 2.10.1: allennlp/modules/elmo.py is missing")
    if "allennlp" not in sys.modules:
        absent = {name for name in _NOT_NEEDED if importlib.util.find_spec(name) is None}
        sys.meta_path.append(_EmptyPackages(absent))
        hub = importlib.import_module("huggingface_hub")
        for name in _GONE_FROM_HUGGINGFACE_HUB:
            if not hasattr(hub, name):
                setattr(hub, name, None)
        if "cached_path" in absent:  # as it does for local files
            importlib.import_module("cached_path").cached_path = lambda path, *_, **__: path
        sys.path.insert(0, str(checkout))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("allennlp.modules.elmo")


class _EmptyPackage(types.ModuleType):
    """A package in which every name is an empty class."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__module__": self.__name__})


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
