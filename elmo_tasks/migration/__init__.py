"""AllenNLP's archives become runs of this project."""

from elmo_tasks.migration.predictor import Predictor

__all__ = ["Predictor"]
