"""Many runs: studies with their reports. This file finds those in the package."""

from __future__ import annotations

from pathlib import Path

from elmo_tasks.config.packaged import files_by_name, find_file

_FOLDER = Path(__file__).resolve().parent


def packaged_studies() -> dict[str, Path]:
    """The files of the studies by their names, such as `benchmarks`."""
    return files_by_name(_FOLDER)


def find_study(name: str | Path) -> Path:
    """The file of a study, or else the study of this name in the package; raises `ConfigError` if there is neither."""
    return find_file(name, packaged_studies(), "study", "elmo-tasks study --list")
