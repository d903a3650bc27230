"""What can be wrong with something of AllenNLP's."""

from __future__ import annotations

from elmo_tasks.errors import ElmoTasksError


class MigrationError(ElmoTasksError):
    """An archive of AllenNLP's that cannot be read, or has something that this project does not have."""
