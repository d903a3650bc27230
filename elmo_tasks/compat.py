"""AllenNLP's classes and functions, by the name that they are imported from."""

from elmo_tasks.integrations.compat import ElmoEmbedder
from elmo_tasks.migration.predictor import (
    BidafPredictor,
    CorefPredictor,
    DecomposableAttentionPredictor,
    Predictor,
    ReadingComprehensionPredictor,
    SemanticRoleLabelerPredictor,
    SentenceTaggerPredictor,
    TextClassifierPredictor,
    TextualEntailmentPredictor,
    load_archive,
    load_predictor,
)

__all__ = [
    "BidafPredictor",
    "CorefPredictor",
    "DecomposableAttentionPredictor",
    "ElmoEmbedder",
    "Predictor",
    "ReadingComprehensionPredictor",
    "SemanticRoleLabelerPredictor",
    "SentenceTaggerPredictor",
    "TextClassifierPredictor",
    "TextualEntailmentPredictor",
    "load_archive",
    "load_predictor",
]
