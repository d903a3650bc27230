"""AllenNLP's classes, by the name that they are imported from."""

from elmo_tasks.integrations.compat import ElmoEmbedder

__all__ = ["ElmoEmbedder"]
