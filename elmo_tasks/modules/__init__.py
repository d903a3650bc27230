"""The parts that heads are made of: embedders, encoders, dropout and the conditional random field.

Importing this package registers every encoder's `"type"`.
"""

from elmo_tasks.modules import alternating_lstm, encoders  # noqa: F401 - registers their types
from elmo_tasks.modules.embedder import Embedder

__all__ = ["Embedder"]
