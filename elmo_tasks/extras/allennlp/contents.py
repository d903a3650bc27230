"""What an archive of AllenNLP's holds: a config, tensors and a vocabulary, which know what has been read of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, MutableMapping
from typing import Any

from torch import Tensor

from elmo_tasks.errors import MigrationError

PADDING, UNKNOWN = "@@PADDING@@", "@@UNKNOWN@@"
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
            if isinstance(values, str):  # as in AllenNLP, only the type
                values = {"type": values}
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


class Weights:
    """Tensors by their names in AllenNLP. Taking one removes it, so that its memory can be freed.

    Arguments:
        tensors: all tensors of the model; shared by all parts, and emptied by `take`.
        prefix: how the names of this part begin.
    """

    def __init__(self, tensors: MutableMapping[str, Tensor], prefix: str = "") -> None:
        self._tensors = tensors
        self.prefix = prefix

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self._tensors

    def part(self, prefix: str) -> Weights:
        """The tensors whose names begin with `prefix`, such as `encoder._module.`, by the rest of their names."""
        return Weights(self._tensors, self.prefix + prefix)

    def names(self) -> list[str]:
        """The names of this part's tensors that have not been taken, without its prefix."""
        return [name[len(self.prefix) :] for name in self._tensors if name.startswith(self.prefix)]

    def take(self, name: str, *shape: int | None) -> Tensor:
        """Removes a tensor and returns it.

        Arguments:
            shape: the expected sizes of its axes, None for any; not checked if there are none.

        Raises:
            MigrationError: it is not there, or has another shape.
        """
        tensor = self.take_optional(name)
        full = self.prefix + name
        if tensor is None:
            raise MigrationError(f"weights.th has no tensor {full!r}, which a model of this config has")
        fits = len(shape) == tensor.dim() and all(
            size in (None, actual) for size, actual in zip(shape, tensor.shape, strict=True)
        )
        if shape and not fits:
            expected = " x ".join("any" if size is None else str(size) for size in shape)
            actual = " x ".join(map(str, tensor.shape)) or "a single number"
            raise MigrationError(f"weights.th: {full!r} is {actual}; by its config it should be {expected}")
        return tensor

    def take_optional(self, name: str) -> Tensor | None:
        """Removes a tensor and returns it; None if it is not there."""
        return self._tensors.pop(self.prefix + name, None)


@dataclasses.dataclass(frozen=True)
class AllenNlpVocabulary:
    """The names of the rows of AllenNLP's tables and of the outputs of its models, by namespace.

    Arguments:
        namespaces: of each namespace all names, in the order of their indices; `@@PADDING@@` is the first in those that
            have it, and has no line in the archive's file.
    """

    namespaces: Mapping[str, tuple[str, ...]]

    def labels(self, namespace: str = "labels") -> tuple[str, ...]:
        """The names of a namespace, in the order of the model's outputs.

        Raises:
            MigrationError: the archive has no such namespace.
        """
        if namespace not in self.namespaces:
            found = ", ".join(sorted(self.namespaces)) or "none"
            raise MigrationError(f"vocabulary/{namespace}.txt is missing; the archive has: {found}")
        return self.namespaces[namespace]
