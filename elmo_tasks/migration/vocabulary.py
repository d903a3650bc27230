"""The vocabulary of an AllenNLP model: the folder `vocabulary/` of its archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from elmo_tasks.migration.migration_error import MigrationError

PADDING, UNKNOWN = "@@PADDING@@", "@@UNKNOWN@@"


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


def is_padded(namespace: str, patterns: tuple[str, ...]) -> bool:
    """Whether a namespace has rows for padding and unknown names, given the patterns of those that do not."""
    return not any(
        namespace.endswith(pattern[1:]) if pattern.startswith("*") else namespace == pattern for pattern in patterns
    )
