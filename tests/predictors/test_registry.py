from __future__ import annotations

import pytest
from torch import nn

import elmo_tasks.models
import elmo_tasks.predictors
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models import BiattentiveClassifier, CrfTagger, SemanticRoleLabeler, TaskModel
from elmo_tasks.predictors import Predictor, TaggerPredictor, build_predictor, register_predictor


def test_the_tagger_s_predictor() -> None:
    model = CrfTagger.__new__(CrfTagger)
    nn.Module.__init__(model)
    built = build_predictor(model, None, None, batch_tokens=7)  # type: ignore[arg-type]
    assert type(built) is TaggerPredictor
    assert built.batch_tokens == 7


def test_the_nearest_base_s_predictor_is_taken(predictor: TaggerPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    class OwnPredictor(TaggerPredictor):
        pass

    class OwnTagger(type(predictor.model)):  # type: ignore[misc]
        pass

    monkeypatch.setattr(elmo_tasks.predictors, "_PREDICTORS", {})

    def build() -> Predictor:
        return build_predictor(OwnTagger(), predictor.vocabulary, predictor.reader)

    with pytest.raises(TypeError, match="no predictor for OwnTagger"):
        build()
    register_predictor(type(predictor.model), TaggerPredictor)
    assert type(build()) is TaggerPredictor
    register_predictor(OwnTagger, OwnPredictor)
    assert type(build()) is OwnPredictor


def test_predicates_are_for_semantic_roles_and_found_by_a_tagger(predictor: TaggerPredictor) -> None:
    labeller = SemanticRoleLabeler.__new__(SemanticRoleLabeler)
    nn.Module.__init__(labeller)
    classifier = BiattentiveClassifier.__new__(BiattentiveClassifier)
    nn.Module.__init__(classifier)
    parts = (predictor.vocabulary, predictor.reader)
    with pytest.raises(ElmoTasksError, match="the run's model is a BiattentiveClassifier"):
        build_predictor(classifier, *parts, predicates=predictor)
    other = build_predictor(classifier, *parts)
    with pytest.raises(ElmoTasksError, match="the model of their run is a BiattentiveClassifier"):
        build_predictor(labeller, *parts, predicates=other)


def test_every_head_has_a_predictor() -> None:
    own = {value for value in vars(elmo_tasks.models).values() if isinstance(value, type)}
    heads = {value for value in own if issubclass(value, TaskModel) and value is not TaskModel}
    served = set(elmo_tasks.predictors._PREDICTORS)
    assert heads == {model for model in served if model.__module__.startswith("elmo_tasks.")}
