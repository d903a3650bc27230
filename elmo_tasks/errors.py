"""The errors that a user can cause and mend.

The command line prints their message alone, without a traceback, and ends with exit code 2.
Everything else that is raised is a defect of this project and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path


class ElmoTasksError(Exception):
    """A problem that the user can mend; its message says what came, what was wanted and where."""


class ConfigError(ElmoTasksError):
    """One or more problems in a config, one a line, each with its place."""


class DataError(ElmoTasksError):
    """A data file that does not follow its format.

    Arguments:
        path: the file.
        problem: what came and what was wanted.
        line: the line's number, from 1, where one line is to blame.
    """

    def __init__(self, path: str | Path, problem: str, line: int | None = None) -> None:
        place = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{place}: {problem}")


class UnknownLabelError(ElmoTasksError):
    """A label that a vocabulary does not have.

    Arguments:
        namespace: the kind of label.
        label: what came.
        known: the labels of that kind, of which the nearest is suggested.
    """

    def __init__(self, namespace: str, label: str, known: Sequence[str]) -> None:
        self.namespace, self.label = namespace, label
        near = difflib.get_close_matches(label, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"the label {label!r} is not among the {namespace} of the run: {', '.join(known)}.{hint}")


class WeightsError(ElmoTasksError):
    """A weights file that is damaged, or not of the layout or sizes that were wanted."""


class RunError(ElmoTasksError):
    """A run's folder or archive that is missing, incomplete or does not fit the request."""


class CacheError(ElmoTasksError):
    """A cache that cannot hold what it should, for want of room or of range."""
