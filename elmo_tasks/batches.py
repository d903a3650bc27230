"""Functions of Arrow tables, by the name that they are imported from."""

from elmo_tasks.hooks import importing_extra

with importing_extra():
    from elmo_tasks.extras.engines.table_functions import Embed, Predict

__all__ = ["Embed", "Predict"]
