"""From raw inputs to results, one predictor for each head."""

from __future__ import annotations

from typing import Any

from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.biattentive_classifier import BiattentiveClassifier
from elmo_tasks.models.bidaf import Bidaf, BidafSelfAttention
from elmo_tasks.models.coreference_resolver import CoreferenceResolver
from elmo_tasks.models.crf_tagger import CrfTagger
from elmo_tasks.models.esim import Esim
from elmo_tasks.models.model import TaskModel
from elmo_tasks.models.semantic_role_labeler import SemanticRoleLabeler
from elmo_tasks.predictors.classifier import ClassifierPredictor
from elmo_tasks.predictors.coreference import CoreferencePredictor
from elmo_tasks.predictors.inference import InferencePredictor
from elmo_tasks.predictors.predictor import DEFAULT_BATCH_TOKENS, Predictor
from elmo_tasks.predictors.reading import ReadingPredictor
from elmo_tasks.predictors.semantic_roles import SemanticRolesPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.text.vocabulary import Vocabulary

__all__ = [
    "DEFAULT_BATCH_TOKENS",
    "ClassifierPredictor",
    "CoreferencePredictor",
    "InferencePredictor",
    "Predictor",
    "ReadingPredictor",
    "SemanticRolesPredictor",
    "TaggerPredictor",
    "build_predictor",
    "register_predictor",
]

_PREDICTORS: dict[type[TaskModel[Any, Any]], type[Predictor]] = {
    BiattentiveClassifier: ClassifierPredictor,
    Bidaf: ReadingPredictor,
    BidafSelfAttention: ReadingPredictor,
    CoreferenceResolver: CoreferencePredictor,
    CrfTagger: TaggerPredictor,
    Esim: InferencePredictor,
    SemanticRoleLabeler: SemanticRolesPredictor,
}


def register_predictor(model: type[TaskModel[Any, Any]], predictor: type[Predictor]) -> None:
    """Makes `build_predictor` use a predictor for a class of models and its subclasses."""
    _PREDICTORS[model] = predictor


def build_predictor(
    model: TaskModel[Any, Any],
    vocabulary: Vocabulary,
    reader: DatasetReader,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    predicates: Predictor | None = None,
) -> Predictor:
    """The predictor for a model, by the model's class or the nearest of its bases.

    Arguments:
        predicates: what finds the predicates for a labeller of semantic roles, a `TaggerPredictor`.

    Raises:
        TypeError: no predictor is registered for such a model.
        ElmoTasksError: `predicates` is no tagger, or the model has no use for predicates.
    """
    for model_class in type(model).__mro__:
        if predictor := _PREDICTORS.get(model_class):
            break
    else:
        raise TypeError(f"no predictor for {type(model).__name__}; see register_predictor")
    if predicates is None:
        return predictor(model, vocabulary, reader, batch_tokens=batch_tokens)
    if not issubclass(predictor, SemanticRolesPredictor):
        raise ElmoTasksError(f"predicates are for a labeller of semantic roles; the run's model is {_name(model)}")
    if not isinstance(predicates, TaggerPredictor):
        raise ElmoTasksError(f"predicates are found by a tagger; the model of their run is {_name(predicates.model)}")
    assert isinstance(model, SemanticRoleLabeler)
    return predictor(model, vocabulary, reader, batch_tokens=batch_tokens, predicates=predicates)


def _name(model: TaskModel[Any, Any]) -> str:
    return f"a {type(model).__name__}"
