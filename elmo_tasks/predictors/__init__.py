"""From raw inputs to results, one predictor for each head."""

from __future__ import annotations

from typing import Any

from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.models.crf_tagger import CrfTagger
from elmo_tasks.models.model import TaskModel
from elmo_tasks.predictors.predictor import DEFAULT_BATCH_TOKENS, Predictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.vocabulary import Vocabulary

__all__ = ["Predictor", "TaggerPredictor", "build_predictor", "register_predictor"]

_PREDICTORS: dict[type[TaskModel[Any, Any]], type[Predictor]] = {CrfTagger: TaggerPredictor}


def register_predictor(model: type[TaskModel[Any, Any]], predictor: type[Predictor]) -> None:
    """Makes `build_predictor` use a predictor for a class of models and its subclasses."""
    _PREDICTORS[model] = predictor


def build_predictor(
    model: TaskModel[Any, Any],
    vocabulary: Vocabulary,
    reader: DatasetReader,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
) -> Predictor:
    """The predictor for a model, by the model's class or the nearest of its bases.

    Raises:
        TypeError: no predictor is registered for such a model.
    """
    for model_class in type(model).__mro__:
        if predictor := _PREDICTORS.get(model_class):
            return predictor(model, vocabulary, reader, batch_tokens=batch_tokens)
    raise TypeError(f"no predictor for {type(model).__name__}; see register_predictor")
