"""The predictor for inference, with an untrained model: what goes in, what comes out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from elmo_tasks import migration
from elmo_tasks.errors import DataError
from elmo_tasks.models.esim import EsimConfig
from elmo_tasks.predictors.allennlp_format import AllenNlpPredictor
from elmo_tasks.predictors.inference import InferencePredictor
from elmo_tasks.text.vocabulary import VocabularyConfig

LABELS = ("contradiction", "entailment", "neutral")
EXAMPLES = [{"premise": ["Orla", "left"], "hypothesis": ["Rain"], "label": label} for label in LABELS]


@pytest.fixture(scope="module")
def predictor() -> InferencePredictor:
    torch.manual_seed(2)
    config = EsimConfig.model_validate(
        {
            "embedder": {"characters": {"embedding_size": 4, "filters": 6}},
            **{key: {"hidden_sizes": (5,)} for key in ("projection", "output")},
            **{key: {"type": "stacked_bilstm", "hidden_sizes": (4,)} for key in ("encoder", "composition")},
        }
    )
    vocabulary = VocabularyConfig().build(config.task, EXAMPLES, [])
    model = config.build(vocabulary, config.embedder.build(vocabulary))
    return InferencePredictor(model, vocabulary, batch_tokens=12)


def test_raw_texts(predictor: InferencePredictor) -> None:
    fields = {"premise": "It rained. Orla didn't leave.", "hypothesis": "Orla stayed.", "id": 7}
    (result,) = predictor.predict([fields])
    outcome = ["label", "probabilities", "premise_attention", "hypothesis_attention"]
    assert list(result) == [*fields, "premise_tokens", "hypothesis_tokens", *outcome]
    assert {key: result[key] for key in fields} == fields
    assert result["premise_tokens"] == ["It", "rained", ".", "Orla", "did", "n't", "leave", "."]
    assert result["hypothesis_tokens"] == ["Orla", "stayed", "."]
    assert list(result["probabilities"]) == ["entailment", "neutral", "contradiction"]
    assert result["label"] == max(result["probabilities"], key=result["probabilities"].get)
    for key, shape in (("premise_attention", (8, 3)), ("hypothesis_attention", (3, 8))):
        assert np.shape(result[key]) == shape
        np.testing.assert_allclose(np.sum(result[key], axis=1), 1, atol=1e-5)
    assert json.loads(json.dumps(result)) == result


def test_every_form_of_input_means_the_same(predictor: InferencePredictor) -> None:
    forms: list[dict[str, Any]] = [
        {"premise": "Orla left.", "hypothesis": "It rained."},
        {"sentence1": "Orla left.", "sentence2": "It rained."},
        {"premise_tokens": ["Orla", "left", "."], "hypothesis_tokens": ["It", "rained", "."]},
        {"premise": "Orla left.", "hypothesis_tokens": ["It", "rained", "."]},
    ]
    results = list(predictor.predict(forms))
    for fields, result in zip(forms, results, strict=True):
        assert result == {**results[2], **fields}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"premise": "a"},
            r"the keys are \['premise'\]; expected either 'hypothesis' or 'sentence2' or .* among them$",
        ),
        ({"text": "a"}, r"plain text; expected JSON objects, such as \{.premise.: "),
        ({"hypothesis": "a"}, "expected either 'premise' or 'sentence1' or 'premise_tokens'"),
        ({"premise": "a", "sentence1": "a", "hypothesis": "b"}, "expected only one of 'premise'"),
        ({"premise": "a", "hypothesis": " "}, "'hypothesis' is ' '; expected a string that is not blank"),
        ({"premise": None, "hypothesis": "a"}, "'premise' is None; expected a string"),
        ({"premise": "a", "hypothesis_tokens": []}, r"'hypothesis_tokens' is \[\]; expected a list of at least one"),
        ({"premise_tokens": ["a", 1], "hypothesis": "a"}, "'premise_tokens' has 1 at position 1; expected strings"),
    ],
)
def test_unusable_inputs_are_named(predictor: InferencePredictor, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"^some\.jsonl:2: .*{problem}"):
        list(predictor.predict([{"premise": "a", "hypothesis": "b"}, fields], source="some.jsonl"))


def test_texts_by_position_and_by_name(predictor: InferencePredictor) -> None:
    fields = {"premise": "It rained.", "hypothesis": "Orla stayed."}
    allennlp = migration.Predictor(AllenNlpPredictor(predictor))
    wanted = allennlp.predict_json(fields)
    assert (
        allennlp.predict("It rained.", "Orla stayed.")
        == allennlp.predict("It rained.", hypothesis="Orla stayed.")
        == wanted
    )
    for values, names in ((("a", "b", "c"), {}), (("a",), fields)):
        with pytest.raises(TypeError, match="predict takes premise, hypothesis, each once"):
            allennlp.predict(*values, **names)


def test_the_keys_of_allennlp(predictor: InferencePredictor) -> None:
    fields = {"premise": "It rained. Orla left.", "hypothesis": "Orla stayed."}
    (own,) = predictor([fields])
    (result,) = AllenNlpPredictor(predictor)([fields])
    assert result == {
        "label": own["label"],
        "label_probs": [own["probabilities"][label] for label in LABELS],
        "labels": list(LABELS),
        "premise_tokens": own["premise_tokens"],
        "hypothesis_tokens": own["hypothesis_tokens"],
        "p2h_attention": own["premise_attention"],
        "h2p_attention": own["hypothesis_attention"],
    }
