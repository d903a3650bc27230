"""A config of AllenNLP's, which knows which of its keys have been read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_tasks.migration.migration_error import MigrationError

_MISSING: Any = object()
_MOST = 1 << 20


class Params:
    """The values of a config, or of a part of it.

    Arguments:
        values: the keys and values. Other types of values than JSON's cannot be there.
        path: the key path of the part, for messages; empty for the whole config.
    """

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._path = path
        self._read: set[str] = set()
        self._parts: dict[str, Params] = {}

    def __contains__(self, key: str) -> bool:
        """Whether the key has a value other than null. This does not count as reading it."""
        return self._values.get(key) is not None

    def keys(self) -> list[str]:
        """All keys, in their order. This does not count as reading them."""
        return list(self._values)

    def path(self, key: str) -> str:
        """The key's path in the whole config, for messages."""
        return f"{self._path}.{key}" if self._path else key

    def get(self, key: str, default: Any = _MISSING) -> Any:
        """A value, which then counts as read.

        Raises:
            MigrationError: the key is missing, and there is no default.
        """
        if key not in self._values and default is _MISSING:
            raise MigrationError(f"config.json: {self.path(key)} is missing")
        self._read.add(key)
        return self._values.get(key, default)

    def number(self, key: str, default: Any = _MISSING) -> Any:
        """Like `get`, for an int or a float that could be a size, a count or a probability."""
        value = self.get(key, default)
        if value is not default and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST
        ):
            expected = f"expected a number, from 0 to {_MOST:,}"
            raise MigrationError(f"config.json: {self.path(key)} is {str(value)[:80]!r}; {expected}")
        return value

    def part(self, key: str) -> Params:
        """A part, whose keys are read one by one; an empty one if the key is missing or null.

        Raises:
            MigrationError: its value is not an object.
        """
        if key not in self._parts:
            self._read.add(key)
            values = self._values.get(key)
            if not isinstance(values, Mapping | None):
                raise MigrationError(f"config.json: {self.path(key)} is {str(values)[:80]!r}; expected an object")
            self._parts[key] = Params(values or {}, self.path(key))
        return self._parts[key]

    def ignore(self, *keys: str) -> None:
        """Marks keys as read, with all that is in them: what they say is known to make no difference."""
        self._read.update(keys)

    def expect(self, key: str, *values: Any, default: Any = None) -> None:
        """Reads a key that may only have one of these values.

        Raises:
            MigrationError: it has another; the first value is the one that is named as expected.
        """
        if (value := self.get(key, default)) not in values:
            expected = " or ".join(str(each) for each in values)
            raise MigrationError(f"config.json: {self.path(key)} is {str(value)[:80]}; only {expected} can be imported")

    def unread(self) -> list[str]:
        """The paths of all keys that have not been read, also of parts."""
        paths = [self.path(key) for key in self._values if key not in self._read]
        return paths + [path for part in self._parts.values() for path in part.unread()]
