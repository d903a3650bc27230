"""The folder of the data that the configs in the package read."""

from __future__ import annotations

import os
from pathlib import Path

from elmo_tasks import hooks
from elmo_tasks.errors import DataError
from elmo_tasks.files.paths import local_path

DATA_VARIABLE = "ELMO_TASKS_DATA"
DEFAULT_DATA_FOLDER = "data"
MAKE_SAMPLE_DATA = "Make this sample data"
ADVICE = MAKE_SAMPLE_DATA, f"Set {DATA_VARIABLE}"  # how it begins


def data_folder() -> Path:
    """`$ELMO_TASKS_DATA`, or `data`."""
    return local_path(os.environ.get(DATA_VARIABLE, DEFAULT_DATA_FOLDER))


class MissingDataError(DataError):
    """A data file that is not there. The message says how to get it, if it is one that the package names.

    Arguments:
        path: the file.
        problem: what is missing.
        instead: what to do without the file.

    Attributes:
        missing: the message without advice.
        advice: what can be done, in sentences of its own.
    """

    def __init__(self, path: str | Path, problem: str = "no such file", instead: str = "") -> None:
        known = filter(None, (advise(Path(path)) for advise in hooks.everything("missing_data")))
        below = set_data_folder() if Path(path).is_relative_to(data_folder()) else ""
        self.missing, self.advice = f"{path}: {problem}", [each for each in (next(known, below), instead) if each]
        super().__init__(path, ". ".join([problem, *self.advice]))


def set_data_folder() -> str:
    """The advice for a file below the folder of the data."""
    return f"{ADVICE[1]} to the folder of your data (now: {data_folder()})"
