"""AllenNLP's archives become runs of this project, and its programs use them."""

from elmo_tasks.migration.importing import Imported, import_allennlp
from elmo_tasks.migration.predictor import Predictor

__all__ = ["Imported", "Predictor", "import_allennlp"]
