"""Functions of Arrow tables, by the name that they are imported from."""

from elmo_tasks.integrations.batches import Embed, Predict

__all__ = ["Embed", "Predict"]
