"""What happens to a part of a source that does not follow its format: an error, or it is left out and reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from elmo_tasks.errors import DataError


class BadUnits:
    """The units of a source that are wrong: its sentences, documents, propositions or rows, as the reader has them.

    Arguments:
        skip: keeps the errors, so that reading goes on with the next unit; otherwise they are raised.
    """

    def __init__(self, *, skip: bool = False) -> None:
        self._skip = skip
        self._errors: list[DataError] = []

    def add(self, error: DataError) -> None:
        """Raises the error of a unit, or keeps it."""
        if not self._skip:
            raise error
        self._errors.append(error)

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """For a block that reads one unit: an error ends the block, and is raised or kept."""
        try:
            yield
        except DataError as error:
            self.add(error)

    def take(self) -> list[DataError]:
        """The errors that were kept since the last call."""
        errors, self._errors = self._errors, []
        return errors
