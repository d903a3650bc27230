"""The predictor for inference, with an untrained model: what goes in, what comes out, and memory that goes back."""

import ctypes
import platform
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_tasks import compat
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.predictors.classifier import InferencePredictor
from elmo_tasks.predictors.predictor import release_memory
from tests.predictors.stub_models import make_inference

LABELS = ("contradiction", "entailment", "neutral")


@pytest.fixture(scope="module")
def predictor() -> InferencePredictor:
    return make_inference()


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


def test_texts_by_position_and_by_name(predictor: InferencePredictor) -> None:
    fields = {"premise": "It rained.", "hypothesis": "Orla stayed."}
    allennlp = compat.Predictor(AllenNlpPredictor(predictor))
    expected = allennlp.predict_json(fields)
    assert allennlp.predict("It rained.", "Orla stayed.") == expected
    assert allennlp.predict("It rained.", hypothesis="Orla stayed.") == expected
    for values, names in ((("a", "b", "c"), {}), (("a",), fields)):
        with pytest.raises(TypeError, match="predict takes premise, hypothesis, each once"):
            allennlp.predict(*values, **names)


def test_the_keys_of_allennlp(predictor: InferencePredictor) -> None:
    fields = {"premise": "It rained. Orla left.", "hypothesis": "Orla stayed."}
    (own,) = predictor([fields])
    (result,) = AllenNlpPredictor(predictor)([fields])
    logits = torch.tensor(result.pop("label_logits"))
    assert logits.softmax(0).tolist() == pytest.approx(result["label_probs"], abs=1e-5)
    assert result.pop("logits") == pytest.approx(logits.tolist())
    for key, attention in (("p2h_attention", "premise_attention"), ("h2p_attention", "hypothesis_attention")):
        torch.testing.assert_close(torch.tensor(result.pop(key)), torch.tensor(own[attention]), atol=1e-6, rtol=0)
    assert result == {
        "label": own["label"],
        "label_probs": pytest.approx([own["probabilities"][label] for label in LABELS], abs=1e-6),  # all digits
        "labels": list(LABELS),
        "premise_tokens": own["premise_tokens"],
        "hypothesis_tokens": own["hypothesis_tokens"],
    }


SIZE, COUNT = 16_384, 2_000  # 33 MB in pieces that malloc takes from its heap


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give memory back by themselves")
def test_free_memory_below_what_is_in_use_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    pieces = [libc.malloc(SIZE) for _ in range(COUNT)]
    for piece in pieces:
        ctypes.memset(piece, 1, SIZE)
    for piece in pieces[:-1]:
        libc.free(piece)
    held = resident_bytes()
    release_memory()
    assert held - resident_bytes() > SIZE * COUNT / 2
    libc.free(pieces[-1])
