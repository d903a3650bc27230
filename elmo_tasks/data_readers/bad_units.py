"""What happens to a part of a source that does not follow its format: an error, or it is left out and reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from elmo_tasks.errors import DataError, OnError


class BadUnits:
    """The units of a source that are wrong: its sentences, documents, propositions or rows, as the reader has them.

    Arguments:
        skip: keeps the errors, so that reading goes on with the next unit; otherwise they are raised.
        on_error: is called with the errors instead, and reading goes on.
    """

    def __init__(self, *, skip: bool = False, on_error: OnError | None = None) -> None:
        self._skip, self._on_error = skip, on_error
        self._errors: list[DataError] = []

    def add(self, error: DataError) -> None:
        """Raises the error of a unit, or keeps it."""
        if self._on_error:
            self._on_error(error)
        elif self._skip:
            self._errors.append(error)
        else:
            raise error

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
