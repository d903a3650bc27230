"""Users' own packages of parts: those that a command names, and those that are installed with an entry point."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from elmo_tasks.config.parts import Config
from elmo_tasks.errors import ConfigError, check_argument, check_several
from elmo_tasks.files.cache import kept_hash

_included: set[str] = set()

ENTRY_POINTS = "elmo_tasks.parts"
"""The group of entry points by which an installed package names a package or module of parts."""


def include_packages(names: Sequence[str]) -> None:
    """Imports users' packages or modules, and all modules in the packages, so that their parts are registered.

    They are looked for in the current folder, too. Parts of installed packages are imported as well.

    Raises:
        ConfigError: an import failed; the message says why.
    """
    check_several("packages", names, "a list of names of packages or modules")
    for name in names:
        check_argument("a package", name, str, "the name of a package or module")
    import_installed_parts()
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        _import_all(name, f"--include-package {name}")
        _included.add(name)


def own_packages(config: Any) -> set[str]:
    """What to include for the parts of a config: names that were included, otherwise the packages of the parts.

    Parts of this project need nothing, and parts that a script defines cannot be included.
    """
    if isinstance(config, (list, tuple)):
        return {name for each in config for name in own_packages(each)}
    if isinstance(config, Mapping):
        return own_packages(list(config.values()))
    if not isinstance(config, Config):
        return set()
    module = type(config).__module__
    top = module.partition(".")[0]
    own = {next((name for name in _included if f"{module}.".startswith(f"{name}.")), top)}
    inner = own_packages([getattr(config, name) for name in type(config).model_fields])
    return inner if top in ("elmo_tasks", "__main__") else own | inner


def own_code(config: Any, *classes: type) -> list[str]:
    """The hashes of the files that users' own parts of a config, and own classes, are written in.

    All modules of their packages count that have been imported. A notebook has no file.
    """
    names = {*own_packages(config), *(each.__module__ for each in classes)}
    tops = {name.partition(".")[0] for name in names} - {"elmo_tasks"}
    modules = sorted((name, module) for name, module in sys.modules.items() if name.partition(".")[0] in tops)
    files = [Path(file) for _, module in modules if (file := getattr(module, "__file__", None))]
    return [kept_hash(file) for file in files if file.is_file()]


@functools.cache
def import_installed_parts() -> None:
    """Imports, once, what installed packages name as entry points of the group `elmo_tasks.parts`.

    Raises:
        ConfigError: an import failed; the message says why.
    """
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        _import_all(point.module, f"entry point {point.name} of {ENTRY_POINTS}")


def _import_all(name: str, needed_by: str) -> None:
    """Imports a package or module, and all modules in the package."""
    module = _import(name, needed_by)
    for inner in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}.", onerror=lambda _: None):
        if not inner.name.endswith(".__main__"):
            _import(inner.name, needed_by)


def _import(module: str, needed_by: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{needed_by}: cannot import {module} ({reason})") from error
