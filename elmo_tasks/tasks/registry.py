"""What belongs to a task in the rooms above, such as its predictor, found by the task's name."""

from __future__ import annotations

from typing import TypeVar

from elmo_tasks.tasks.task import Task

PartT = TypeVar("PartT")


class TaskRegistry(dict[str, PartT]):
    """One thing of each task, by the task's name: its predictor, what is drawn for its results, and so on.

    A task of another package is added under its own name.
    """

    def find(self, task: Task) -> PartT | None:
        """The thing of a task or, if it has none, of the nearest of its base classes; None if none of them has one."""
        return next((self[name] for name in task.names() if name in self), None)
