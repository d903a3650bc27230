from __future__ import annotations

import pytest
from torch import nn

import elmo_tasks.predictors
from elmo_tasks.models import CrfTagger
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
