from __future__ import annotations

import dataclasses

import pytest
from torch import nn

import elmo_tasks.predictors
import elmo_tasks.tasks
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models import TaskModel
from elmo_tasks.models.biattentive_classifier import BiattentiveClassifier
from elmo_tasks.models.crf_tagger import CrfTagger
from elmo_tasks.models.semantic_role_labeler import SemanticRoleLabeler
from elmo_tasks.predictors import AllenNlpPredictor, Predictor, allennlp_format, build_predictor, register_predictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.tasks import Tagging, Task
from elmo_tasks.text.tokenizers import UnicodeTokenizer


def bare(model: type[TaskModel]) -> TaskModel:
    """A model without its parts."""
    made = model.__new__(model)
    nn.Module.__init__(made)
    return made


def test_the_tagger_s_predictor() -> None:
    model = bare(CrfTagger)
    model.task = Tagging("BIOUL")
    tokenizer = UnicodeTokenizer()
    built = build_predictor(model, None, batch_tokens=7, tokenizer=tokenizer)  # type: ignore[arg-type]
    assert type(built) is TaggerPredictor
    for each in (built, AllenNlpPredictor(built)):
        assert (each.batch_tokens, each.tokenizer) == (7, tokenizer)


def test_the_nearest_base_s_predictor_is_taken(predictor: TaggerPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    class OwnPredictor(TaggerPredictor):
        pass

    @dataclasses.dataclass(frozen=True)
    class OwnTagging(Tagging):
        pass

    monkeypatch.setattr(elmo_tasks.predictors, "_PREDICTORS", {})
    predictor.model.task = OwnTagging("BIOUL")

    def build() -> Predictor:
        return build_predictor(predictor.model, predictor.vocabulary)

    with pytest.raises(TypeError, match="no predictor for the task OwnTagging"):
        build()
    register_predictor(Tagging, TaggerPredictor)
    assert type(build()) is TaggerPredictor
    register_predictor(OwnTagging, OwnPredictor)
    assert type(build()) is OwnPredictor


def test_predicates_are_for_semantic_roles_and_found_by_a_tagger(predictor: TaggerPredictor) -> None:
    labeller, classifier = bare(SemanticRoleLabeler), bare(BiattentiveClassifier)
    with pytest.raises(ElmoTasksError, match="the model of the run is a BiattentiveClassifier"):
        build_predictor(classifier, predictor.vocabulary, predicates=predictor)
    other = build_predictor(classifier, predictor.vocabulary)
    with pytest.raises(ElmoTasksError, match="the model of their run is a BiattentiveClassifier"):
        build_predictor(labeller, predictor.vocabulary, predicates=other)


def test_every_task_has_a_predictor() -> None:
    own = {value for value in vars(elmo_tasks.tasks).values() if isinstance(value, type)}
    tasks = {value for value in own if issubclass(value, Task) and value is not Task}
    served = set(elmo_tasks.predictors._PREDICTORS)
    assert tasks == {task for task in served if task.__module__.startswith("elmo_tasks.")}


def test_allennlp_has_a_predictor_for_every_task_but_those_of_users(predictor: TaggerPredictor) -> None:
    own = {task for task in elmo_tasks.predictors._PREDICTORS if task.__module__.startswith("elmo_tasks.")}
    assert set(allennlp_format._FORMATS) == own  # other tests add tasks of their own
    predictor.model.task = object()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="AllenNLP has no predictor for the task object"):
        AllenNlpPredictor(TaggerPredictor(predictor.model, predictor.vocabulary))
