"""The classifier's predictor, with an untrained network: what goes in, what comes out."""

import pytest
import torch

import elmo_tasks
from elmo_tasks.errors import DataError
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.predictors import Origin
from elmo_tasks.predictors.classifier import ClassifierPredictor
from tests.predictors.stub_models import make_classifier


@pytest.fixture(scope="module")
def predictor() -> ClassifierPredictor:
    return make_classifier()


def test_a_text_of_two_sentences_has_one_result(predictor: ClassifierPredictor) -> None:
    text = " It rained.\nOrla left!"
    (result,) = predictor.predict([{"text": text, "id": 7}])
    assert list(result) == ["id", "text", "tokens", "offsets", "label", "probabilities", "attention"]
    assert (result["id"], result["text"]) == (7, text)
    assert result["tokens"] == ["It", "rained", ".", "Orla", "left", "!"]
    assert [text[start:end] for start, end in result["offsets"]] == result["tokens"]
    assert list(result["probabilities"]) == ["bad", "good"]
    assert result["label"] == max(result["probabilities"], key=result["probabilities"].get)
    assert len(result["attention"]) == 6
    assert sum(result["attention"]) == pytest.approx(1, abs=1e-5)
    assert result["attention"] == [round(weight, 6) for weight in result["attention"]]


def test_tokens(predictor: ClassifierPredictor) -> None:
    tokens = ["It", "rained", ".", "Orla", "left", "!"]
    (result,) = predictor.predict([{"tokens": tokens}])
    assert list(result) == ["tokens", "label", "probabilities", "attention"]
    (same,) = predictor.predict([{"text": "It rained. Orla left!"}])
    assert {key: same[key] for key in result} == result
    assert predictor({"tokens": elmo_tasks.tokenize("It rained. Orla left!")}) == [result]


def test_the_columns_of_the_training_data_are_read(
    predictor: ClassifierPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictor, "origin", Origin(own_columns={"review": "text", "stars": "label"}))
    (result,) = predictor({"review": "It rained.", "stars": 4, "id": 7})
    assert result == predictor({"text": "It rained.", "label": 4, "id": 7})[0]
    assert (result["text"], result["input_label"], result["id"]) == ("It rained.", 4, 7)
    (result,) = predictor({"text": "It rained.", "review": "of the rain"})
    assert (result["text"], result["review"]) == ("It rained.", "of the rain")


def test_texts_that_would_take_too_long_are_refused(
    predictor: ClassifierPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClassifierPredictor, "most_tokens", 4)
    inputs = predictor.predict([{"tokens": ["Orla"] * 4}, {"tokens": ["Orla"] * 5}])
    assert len(next(inputs)["attention"]) == 4
    with pytest.raises(DataError, match=r"^inputs:2: 5 tokens, .*; expected at most 4; .*ELMO_TASKS_LIMITS"):
        next(inputs)
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "2")
    assert len(list(predictor.predict([{"tokens": ["Orla"] * 8}]))) == 1


def test_the_keys_of_allennlp(predictor: ClassifierPredictor) -> None:
    (own,) = predictor([{"text": "It rained. Orla left!"}])
    (result,) = AllenNlpPredictor(predictor)([{"sentence": "It rained. Orla left!", "id": 7}])
    probabilities = list(own["probabilities"].values())
    logits = torch.tensor(result.pop("logits"))
    assert logits.softmax(0).tolist() == pytest.approx(probabilities, abs=1e-5)
    assert result == {
        "id": 7,
        "label": own["label"],
        "probs": pytest.approx(probabilities, abs=1e-6),  # here with all digits
        "class_probabilities": result["probs"],
        "labels": ["bad", "good"],
        "tokens": ["It", "rained", ".", "Orla", "left", "!"],
        "token_ids": [1, 1, 1, 2, 4, 1],  # 1 is a word that the vocabulary does not have
    }
