"""AllenNLP's classes and functions, by the name that they are imported from; also the outputs of TensorFlow Hub's."""

# ruff: noqa: I001 - names that are imported from here

from typing import NoReturn

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
    )

_INSTEAD = {
    "ELMoCharacterMapper": "batch_to_ids(sentences), which gives the character ids of tokens",
    "ELMoTokenCharactersIndexer": "batch_to_ids(sentences), which gives the character ids of tokens",
    "DatasetReader": "elmo_tasks.data_readers.DatasetReader, whose subclasses read other files",
    "Model": "elmo_tasks.load('RUN').model, or a subclass of elmo_tasks.models.TaskModel",
}


def __getattr__(name: str) -> NoReturn:
    """Says what to use instead of the classes that are not here."""
    if name in _INSTEAD:
        raise ImportError(f"elmo_tasks.compat has no {name}; use {_INSTEAD[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
