"""The tensors of an AllenNLP model, which are taken one by one until none is left."""

from __future__ import annotations

from collections.abc import MutableMapping

from torch import Tensor

from elmo_tasks.migration.migration_error import MigrationError


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

    def unused(self) -> list[str]:
        """The full names of this part's tensors that have not been taken."""
        return [self.prefix + name for name in self.names()]
