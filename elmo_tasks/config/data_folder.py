"""The folder of the data that the configs in the package read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.errors import DataError
from elmo_tasks.files.paths import local_path

DATA_VARIABLE = "ELMO_TASKS_DATA"
DEFAULT_DATA_FOLDER = "data"
# Sample data that files in the package name without the variable, and the options that make it.
SAMPLE_FOLDERS = {"runs/quickstart-data": "--task ner", "runs/quick-data": "--sentences 300,60,60"}

_ADVICE = "Make this sample data", f"Set {DATA_VARIABLE}"


def data_folder() -> Path:
    """`$ELMO_TASKS_DATA`, or `data`."""
    return local_path(os.environ.get(DATA_VARIABLE, DEFAULT_DATA_FOLDER))


def in_data_folder(path: str) -> str:
    """A path below the default folder, which installed models name, below `data_folder` instead."""
    given = Path(path)
    inside = given.is_relative_to(DEFAULT_DATA_FOLDER)
    return str(data_folder() / given.relative_to(DEFAULT_DATA_FOLDER)) if inside else path


class MissingDataError(DataError):
    """A data file that is not there. The message says how to get it, if it is one that the package names.

    Arguments:
        path: the file.
        problem: what is missing.
        instead: what to do without the file.

    Attributes:
        problem: the message without advice.
        advice: what can be done, in sentences of its own.
    """

    def __init__(self, path: str | Path, problem: str = "no such file", instead: str = "") -> None:
        self.problem, self.advice = f"{path}: {problem}", [each for each in (_advice(Path(path)), instead) if each]
        super().__init__(path, ". ".join([problem, *self.advice]))


def advice_last(problems: Iterable[str]) -> list[str]:
    """Problems, each once. What can be done about missing files comes last."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.startswith(_ADVICE))


def _advice(path: Path) -> str:
    for sample_folder, options in SAMPLE_FOLDERS.items():
        if path.is_relative_to(sample_folder):
            return f"{_ADVICE[0]}: elmo-tasks sample-data {sample_folder} {options}"
    if path.is_relative_to(folder := data_folder()):
        sample = f"elmo-tasks sample-data {DEFAULT_DATA_FOLDER}"
        if folder != Path(DEFAULT_DATA_FOLDER):  # sample data do not belong among other data
            sample += f", and set it to {DEFAULT_DATA_FOLDER!r}"
        return f"{_ADVICE[1]} to the folder of your data (now: {folder}), or make sample data: {sample}"
    return ""
