"""From raw inputs to results, one predictor for each task."""

from __future__ import annotations

from typing import Any

from elmo_tasks import tasks
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.model import TaskModel
from elmo_tasks.predictors.classifier import ClassifierPredictor, InferencePredictor
from elmo_tasks.predictors.coreference import CoreferencePredictor
from elmo_tasks.predictors.predictor import DEFAULT_BATCH_TOKENS, Input, Origin, Predictor
from elmo_tasks.predictors.reading import ReadingPredictor
from elmo_tasks.predictors.semantic_roles import SemanticRolesPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.text.tokenizers import TREEBANK, Tokenizer
from elmo_tasks.text.vocabulary import Vocabulary

__all__ = ["DEFAULT_BATCH_TOKENS", "Input", "Origin", "Predictor", "build_predictor", "register_predictor"]

PREDICTORS = tasks.TaskRegistry[type[Predictor]](
    {
        tasks.Classification.name: ClassifierPredictor,
        tasks.Coreference.name: CoreferencePredictor,
        tasks.MultiLabel.name: ClassifierPredictor,
        tasks.PairRegression.name: InferencePredictor,
        tasks.Reading.name: ReadingPredictor,
        tasks.Regression.name: ClassifierPredictor,
        tasks.SemanticRoles.name: SemanticRolesPredictor,
        tasks.Tagging.name: TaggerPredictor,
        tasks.TextPairs.name: InferencePredictor,
    }
)


def register_predictor(task: type[tasks.Task], predictor: type[Predictor]) -> None:
    """Makes `build_predictor` use a predictor for a task, and for its subclasses that have none of their own."""
    PREDICTORS[task.name] = predictor


def build_predictor(
    model: TaskModel[Any, Any],
    vocabulary: Vocabulary,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    tokenizer: Tokenizer = TREEBANK,
    predicates: Predictor | None = None,
    **settings: Any,
) -> Predictor:
    """Makes the predictor that is registered for a model's task or, if there is none, for the nearest base class.

    Arguments:
        vocabulary: that of the model.
        batch_tokens: the most tokens of a batch.
        tokenizer: splits raw text.
        predicates: the predictor of a tagger, which finds the predicates for a model of semantic roles.
        settings: other arguments of the predictor, such as its `origin`.

    Raises:
        TypeError: no predictor is registered for such a task.
        ElmoTasksError: `predicates` does not find predicates, or the model does not need them.
    """
    chosen = PREDICTORS.find(model.task)
    if chosen is None:
        raise TypeError(f"no predictor for the task {type(model.task).__name__}; see register_predictor")
    settings |= {"batch_tokens": batch_tokens, "tokenizer": tokenizer}
    if predicates is not None:
        if not issubclass(chosen, SemanticRolesPredictor):
            raise ElmoTasksError(f"predicates are for semantic roles; the model of the run is a {type(model).__name__}")
        settings["predicates"] = predicates
    return chosen(model, vocabulary, **settings)
