"""AllenNLP's classes and functions, by the name that they are imported from; also the outputs of TensorFlow Hub's."""

# ruff: noqa: I001 - names that are imported from here

from elmo_tasks.elmo import Elmo as Elmo, batch_to_ids as batch_to_ids
from elmo_tasks.hooks import importing_extra

with importing_extra():
    from elmo_tasks.extras.allennlp.elmo_embedder import ElmoEmbedder as ElmoEmbedder, tf_hub_outputs as tf_hub_outputs
    from elmo_tasks.extras.allennlp.predictor import (
        BidafPredictor as BidafPredictor,
        CorefPredictor as CorefPredictor,
        DecomposableAttentionPredictor as DecomposableAttentionPredictor,
        Predictor as Predictor,
        ReadingComprehensionPredictor as ReadingComprehensionPredictor,
        SemanticRoleLabelerPredictor as SemanticRoleLabelerPredictor,
        SentenceTaggerPredictor as SentenceTaggerPredictor,
        TextClassifierPredictor as TextClassifierPredictor,
        TextualEntailmentPredictor as TextualEntailmentPredictor,
        load_archive as load_archive,
        load_predictor as load_predictor,
        missing_class as __getattr__,  # noqa: F401 - Python calls it for other names
    )
