"""Errors that users can cause and fix.

The command line prints only their message, without a traceback, and ends with their exit code.
All other exceptions are bugs in this project and keep their traceback.
"""

from __future__ import annotations

import errno
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

# Options of commands, with the arguments of the functions that are the same in Python.
FORCE, RESUME = "--force (force=True)", "--resume (resume=True)"
BEGIN_AGAIN = f"{FORCE} begins the run again"
_MOST_CHARACTERS = 2_000  # of a problem in a data file
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a full disk, a used-up quota, a file that is too large


class ElmoTasksError(Exception):
    """A problem that the user can fix. The message says what was found, what was expected and where."""

    exit_code = 2


class ArgumentError(ElmoTasksError, TypeError):
    """A value of the wrong kind in a call, in Python. It is also a TypeError, as functions of Python raise it."""


class IncompleteError(ElmoTasksError):
    """A problem after which the output files have only a part of the results."""

    exit_code = 1


class ConfigError(ElmoTasksError):
    """One or more problems in a config, one per line, each with its location."""


class UnknownTypeError(ConfigError):
    """Problems in a config, one of which is a `"type"` that no part has; perhaps that of a package of the user."""


class DataError(ElmoTasksError):
    """A data file that does not follow its format.

    Arguments:
        path: the file.
        problem: what was found and what was expected.
        line: the number of the line, from 1, if the problem is in a single line.
    """

    def __init__(self, path: str | Path, problem: str, line: int | None = None) -> None:
        location = f"{path}:{line}" if line is not None else str(path)
        if len(problem) > _MOST_CHARACTERS:  # it shows a value of the file, which can be as long as the file
            problem = f"{problem[: _MOST_CHARACTERS - 500]} [...] {problem[-500:]}"
        super().__init__(f"{location}: {problem}")
        self.problem, self.line = problem, line


OnError = Callable[[DataError], None]
"""What is done with the error of an input, which is skipped then."""


class WriteError(ElmoTasksError):
    """A file that cannot be written, for example because its disk is full.

    Arguments:
        path: the file.
        reason: why the system refuses.
        expected: how many bytes were to be written, as far as is known.
        remedy: what to do; by default what the reason suggests.
    """

    def __init__(
        self, path: str | Path, reason: OSError | str, expected: int | None = None, *, remedy: str | None = None
    ) -> None:
        text = reason if isinstance(reason, str) else reason.strerror or str(reason)
        size = f"; expected at least {expected:,} bytes" if expected else ""
        is_full = isinstance(reason, OSError) and reason.errno in DISK_FULL_ERRORS
        default = "Free some space there or choose another place, then try again" if is_full else ""
        advice = f". {remedy or default}" if remedy or default else ""
        super().__init__(f"{path}: cannot be written: {text}{size}{advice}")
        self._path, self._reason, self._expected, self._remedy = Path(path), reason, expected, remedy

    def moved(self, temporary: Path, path: Path) -> WriteError:
        """This error, for a file in a temporary folder that would have been moved to `path`."""
        own_path = path / self._path.relative_to(temporary) if self._path.is_relative_to(temporary) else self._path
        return WriteError(own_path, self._reason, self._expected, remedy=self._remedy)


class UnknownLabelError(ElmoTasksError):
    """A label that is not in the vocabulary.

    Arguments:
        namespace: the kind of label.
        label: the unknown label.
        known: all labels of that kind; the message suggests the most similar one.
    """

    def __init__(self, namespace: str, label: str, known: Sequence[str]) -> None:
        self.namespace, self.label = namespace, label
        hint = did_you_mean(label, known)
        super().__init__(f"the label {label!r} is not among the {namespace} of the run: {', '.join(known)}.{hint}")


class WeightsError(ElmoTasksError):
    """A weights file that is damaged or has the wrong layout or sizes."""


class RemoteError(WeightsError):
    """A model elsewhere that cannot be downloaded."""


class RunError(ElmoTasksError):
    """A run, as a folder or an archive, that is missing, incomplete or does not fit the request."""


class AllenNlpArchiveError(RunError):
    """An archive of AllenNLP's in the place of a run.

    Arguments:
        path: the archive, or the folder that it unpacks to.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(f"{path}: an AllenNLP archive; `elmo-tasks import-allennlp {path} RUN` turns it into a run")


class MigrationError(ElmoTasksError):
    """An archive or a config of AllenNLP's that cannot be read, or has something that this project does not have."""


class CacheError(ElmoTasksError):
    """A cache that cannot store the data: it is too large, or its numbers are out of range."""


def check_argument(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raises an `ArgumentError` if the value of an argument is of none of the kinds; a truth value is not a number."""
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ArgumentError(f"{name} is {one_line_of(value)}; expected {expected}")


def check_several(name: str, value: object, expected: str) -> None:
    """Raises an `ArgumentError` if the value of an argument is not a list or another collection of items.

    A generator is not, since it can be read only once.
    """
    if not isinstance(value, Collection) or isinstance(value, (str, bytes, Mapping)):
        raise ArgumentError(f"{name} is {one_line_of(value)}; expected {expected}")


def check_count(name: str, value: object, least: int) -> None:
    """Raises an `ArgumentError` if the value of an argument is not a whole number from `least` on."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"{name} is {one_line_of(value)}; expected a whole number of at least {least}")


def check_choice(name: str, value: object, choices: Sequence[str | None]) -> None:
    """Raises an `ArgumentError` if the value of an argument is none of the choices."""
    if not isinstance(value, (str, type(None))) or value not in choices:
        raise ArgumentError(f"{name} is {one_line_of(value)}; expected {' or '.join(map(str, choices))}")


def one_line_of(value: object, limit: int = 80) -> str:
    """A value as messages show it."""
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def one_line(error: Exception, limit: int = 200) -> str:
    """The message of another library's error, which may have many lines, for use within a message."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and what it counts: `1 document`, `1,234 documents`, `2.5 million tokens`."""
    noun = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,} {noun}" if number < 1_000_000 else f"{number / 1e6:,.1f} million {noun}"


def some_of(names: Sequence[object], most: int = 3) -> str:
    """The first names of a list for use in a message, at most `most` of them, and how many more there are."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def nearest(name: object, known: Sequence[str]) -> str | None:
    """The known name that is most similar to a name, None if none is similar."""
    import difflib

    return next(iter(difflib.get_close_matches(name, known)), None) if isinstance(name, str) else None


def did_you_mean(name: object, known: Sequence[str]) -> str:
    """A question that ends a message and suggests the most similar known name. Empty if none is similar."""
    near = nearest(name, known)
    return f" Did you mean '{near}'?" if near else ""
