"""Trained models that installed packages bring: looked up by name, described and listed, without PyTorch.

A package brings models by an entry point of the group `elmo_tasks.models`, which names a Python package. No code of it
runs. Each folder in it with a config.json is a model: a run's files that prediction needs, see `folder`, and

about.json    what the run itself does not know: the names and licences of its data, scores of several runs
README.md     the model card
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import importlib.util
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pydantic

from elmo_tasks.errors import RunError, did_you_mean
from elmo_tasks.files.json_files import read_json

logger = logging.getLogger(__name__)

ENTRY_POINTS = "elmo_tasks.models"
"""The group of entry points by which an installed package names the Python package with its models."""

INSTALL = "`pip install ./trained_models` in a clone of elmo-tasks"
"""What installs `elmo-tasks-models`, which brings `OWN_NAMES`."""

VERBS = "pos"
"""The one of them that finds verbs, the predicates of AllenNLP's models."""

OWN_NAMES = ("ner", VERBS, "predicates", "sentiment", "inference", "reading", "coreference", "roles")

_NAME = re.compile(r"\w[\w.-]*")  # of a model; anything else is a path


class Score(pydantic.BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The mean score of several runs, one for each seed, with ELMo and without."""

    metric: str
    split: str
    seeds: int
    elmo: float
    baseline: float | None = None
    p: float | None = None  # that the difference is by chance

    def __str__(self) -> str:
        mean = f" (mean of {self.seeds} seeds)" if self.seeds > 1 else ""
        parts = [f"{self.metric} {self.elmo:.2f} on the {self.split} data{mean}"]
        parts += [] if self.baseline is None else [f"without ELMo {self.baseline:.2f}"]
        parts += [] if self.p is None else [f"p = {self.p:.2g}"]
        return ", ".join(parts)


class About(pydantic.BaseModel, frozen=True, extra="forbid", strict=True):
    """The contents of `about.json`."""

    task: str | None = None
    data: tuple[str, ...] = ()  # the names of the data sets
    licence: str | None = None  # of the data, and what it says of the model
    score: Score | None = None
    predicates: str | None = None  # for semantic roles: the name of the installed model that finds predicates
    without_elmo: str | None = None  # the name of its twin: the installed model that is the same without ELMo
    caution: str | None = None  # what to expect of it on other texts than those of its data, in a sentence

    @staticmethod
    def path(folder: Path) -> Path:
        return folder / "about.json"

    @classmethod
    def of(cls, folder: Path) -> About:
        """What the folder of a model says; empty if it says nothing. Raises `RunError` if the file is damaged."""
        path = cls.path(folder)
        return read_json(path, cls, "what is known of a model") if path.is_file() else cls()


@dataclasses.dataclass(frozen=True)
class InstalledModel:
    """A model that an installed package brings."""

    name: str
    folder: Path
    package: str  # the name by which it is installed

    def card(self) -> str:
        """The text of its model card; raises `RunError` if it has none."""
        path = self.folder / "README.md"
        if not path.is_file():
            raise RunError(f"{path}: no such file; the package {self.package} has no card for this model")
        return path.read_text(encoding="utf-8")

    def about(self) -> About:
        """Raises `RunError` if the file is damaged."""
        return About.of(self.folder)

    def bilm(self) -> dict[str, Any] | None:
        """The reference to its biLM, None if it has none; raises `RunError` if the file is damaged."""
        path = self.folder / "bilm.json"
        return read_json(path, dict[str, Any], "the reference to the biLM of a run") if path.is_file() else None

    def size(self) -> int:
        """The bytes of its files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def to_json(self) -> dict[str, Any]:
        """All of this as values for JSON."""
        facts = {"bytes": self.size(), "bilm": self.bilm(), "package": self.package, "folder": str(self.folder)}
        return {"name": self.name, **self.about().model_dump(mode="json"), **facts}


def installed_models() -> list[InstalledModel]:
    """The models of all installed packages, in the order of their names.

    Raises:
        RunError: what an entry point names is not there.
    """
    models: list[InstalledModel] = []
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        package = point.dist.name if point.dist else point.name
        try:
            spec = importlib.util.find_spec(point.module)
        except ImportError:
            spec = None
        if spec is None or not spec.submodule_search_locations:
            raise RunError(
                f"{package}: its entry point of {ENTRY_POINTS} names {point.value}; expected a package that is "
                f"installed: install {package} again, or uninstall it"
            )
        for folder in map(Path, spec.submodule_search_locations):
            models += [InstalledModel(each.parent.name, each.parent, package) for each in folder.glob("*/config.json")]
    return sorted(models, key=lambda model: model.name)


def twins(models: Iterable[InstalledModel]) -> dict[str, str]:
    """The models without ELMo, by name, and the name of the model with ELMo that each is compared with."""
    return {twin: model.name for model in models if (twin := model.about().without_elmo)}


def model_named(name: str) -> InstalledModel | None:
    """The installed model of this name, or None; raises `RunError` if several packages bring one."""
    found = [model for model in installed_models() if model.name == name]
    if len(found) > 1:
        packages = " and ".join(model.package for model in found)
        raise RunError(f"{name}: {packages} have a model of this name; uninstall one of them, or name a folder")
    return found[0] if found else None


def find_model(path: Path) -> InstalledModel | None:
    """The installed model that a path names, None if it names none. A file or folder of the same name comes first.

    Raises:
        RunError: several packages bring a model of this name.
    """
    name = str(path)
    if not _NAME.fullmatch(name):
        return None
    if not path.exists():
        return model_named(name)
    if any(model.name == name for model in installed_models()):
        _say_what_comes_first(path.resolve())
    return None


@functools.cache
def _say_what_comes_first(path: Path) -> None:
    logger.info("%s: used instead of the installed model of the same name", path)


def package_of(folder: Path) -> str | None:
    """The installed package that brings the model in a folder; None for any other folder."""
    return next((model.package for model in installed_models() if model.folder.resolve() == folder.resolve()), None)


def how_to_get(path: Path) -> str:
    """The end of an error about a path that is not there: how to get the model of this name, or which there are."""
    name = str(path)
    if path.exists() or not _NAME.fullmatch(name):
        return ""
    if name in OWN_NAMES:
        return f"; install the model of this name with {INSTALL}"
    known = [model.name for model in installed_models()]
    return f", of which there are: {', '.join(known) or 'none'}.{did_you_mean(name, known)}"
