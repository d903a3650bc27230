"""What a run has learned from: a hash of each example, and what it was used for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from elmo_tasks.files.tensor_files import read_tensors, write_tensors
from elmo_tasks.tasks import Task

HELD_OUT, LEARNED = -1, 0
"""Parts: held out from the training data, and learned from. Of a cross-validation, parts are folds, from 1."""


@dataclasses.dataclass(frozen=True)
class Learned:
    """The training data of a run, also what was held out of it. It does not have the examples, only their hashes.

    Attributes:
        parts: the part of each example, by its key; see `Task.key`.
        labels: a hash of what is right for it, by its key; of all that is, where examples contradict each other.
    """

    parts: Mapping[int, int]
    labels: Mapping[int, int]

    @classmethod
    def read(cls, path: Path) -> Learned | None:
        """Reads what `write` wrote. Imported runs and those of earlier versions do not have it: the result is None."""
        if not path.is_file():
            return None
        tensors = read_tensors(path)
        keys = tensors["keys"].tolist()
        return cls(*(dict(zip(keys, tensors[name].tolist(), strict=True)) for name in ("parts", "labels")))

    def write(self, path: Path) -> None:
        columns = {"keys": [*self.parts], "parts": [*self.parts.values()], "labels": [*self.labels.values()]}
        write_tensors(path, {name: torch.tensor(values, dtype=torch.int64) for name, values in columns.items()})

    def seen(self, task: Task, examples: Iterable[Mapping[str, Any]]) -> list[int]:
        """The rows of the examples that the model has learned from, whatever their label is now."""
        return [row for row, each in enumerate(examples) if self.parts.get(task.key(each), HELD_OUT) >= LEARNED]

    def changes(self, later: Learned) -> str:
        """What later training data has more, otherwise and less. Examples that ask the same count once."""
        both = self.labels.keys() & later.labels.keys()
        corrected = sum(self.labels[key] != later.labels[key] for key in both)
        added, gone = len(later.labels) - len(both), len(self.labels) - len(both)
        kept = len(both) - corrected
        return f"{added:,} new, {corrected:,} with another label, {kept:,} as before, {gone:,} no longer there"
