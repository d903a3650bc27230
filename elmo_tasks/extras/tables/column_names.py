"""Names that are added to a user's data, and those that the data have already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from elmo_tasks.errors import DataError


def free_name(name: str, taken: Collection[str], names: Collection[str]) -> str:
    """The name under which a column or key of the data is kept next to results: its own, or `input_<name>`.

    Arguments:
        taken: the names that results have.
        names: all names of the data.
    """
    free = name
    while free in taken or (free != name and free in names):
        free = f"input_{free}"
    return free


def check_distinct(names: Collection[str], path: Path, line: int) -> None:
    """Raises a `DataError` if a header row has a name twice."""
    if repeated := [name for name, count in Counter(names).items() if count > 1 and name]:
        raise DataError(path, f"columns that the header row has twice: {', '.join(map(repr, repeated))}", line)
