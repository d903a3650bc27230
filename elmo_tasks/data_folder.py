"""The folder of the data that the configs in the package read."""

from __future__ import annotations

import os
from pathlib import Path

from elmo_tasks.errors import DataError

DATA_VARIABLE = "ELMO_TASKS_DATA"
DEFAULT_DATA_FOLDER = "data"


def data_folder() -> Path:
    """`$ELMO_TASKS_DATA`, or `data`."""
    return Path(os.environ.get(DATA_VARIABLE, DEFAULT_DATA_FOLDER))


class MissingDataError(DataError):
    """A data file that is not there. The message says how to name the folder of the data, and how to make some.

    Arguments:
        path: the file.
        problem: what is missing.
    """

    def __init__(self, path: str | Path, problem: str = "no such file") -> None:
        super().__init__(
            path,
            f"{problem}. Set {DATA_VARIABLE} to the folder of your data (now: {data_folder()}), or make sample data: "
            f"elmo-tasks sample-data {DEFAULT_DATA_FOLDER}",
        )
