"""Many runs: studies with their reports, and searches of hyperparameters. This file finds those in the package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.config.data_folder import ADVICE
from elmo_tasks.config.packaged import files_by_name, find_file

_FOLDER = Path(__file__).resolve().parent
_SEARCH = "tune_"  # what the names of searches begin with


def packaged_studies() -> dict[str, Path]:
    """The files of the studies by their names, such as `benchmarks`."""
    return {name: path for name, path in files_by_name(_FOLDER).items() if not name.startswith(_SEARCH)}


def packaged_searches() -> dict[str, Path]:
    """The files of the searches by their names, such as `tune_quick`."""
    return {name: path for name, path in files_by_name(_FOLDER).items() if name.startswith(_SEARCH)}


def find_study(name: str | Path) -> Path:
    """The file of a study, or else the study of this name in the package; raises `ConfigError` if there is neither."""
    return find_file(name, packaged_studies(), "study", "elmo-tasks study --list")


def find_search(name: str | Path) -> Path:
    """The file of a search of hyperparameters; as `find_study`."""
    return find_file(name, packaged_searches(), "search", "elmo-tasks tune --list")


def advice_last(problems: Iterable[str]) -> list[str]:
    """Problems, each once. What can be done about missing files comes last."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.startswith(ADVICE))
