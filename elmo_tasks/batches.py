"""Functions of Arrow tables, by the name that they are imported from."""

from elmo_tasks.extras.engines.table_functions import Embed, Predict

__all__ = ["Embed", "Predict"]
