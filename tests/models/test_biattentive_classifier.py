"""The biattentive classification network: its equations, one number at a time, and what it predicts for a text."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_tasks.models.biattentive_classifier import BiattentiveClassifier
from elmo_tasks.modules import attention as attention_module
from elmo_tasks.modules.attention import masked_softmax
from elmo_tasks.tasks.classification import Classification, ClassificationBatch
from tests.models.small import attention, encode, linear, make_head

OPINIONS = ("good", "bad", "odd")
OPINION_TEXTS = (["tarn", "vale", "moro", "orla", "vale"], ["orla"], ["vale", "tarn", "tarn"])


def make_biattentive() -> tuple[BiattentiveClassifier, ClassificationBatch]:
    layers = {
        "type": "bcn",
        "pre_encoder": {"hidden_sizes": (5,)},
        "encoder": {"type": "stacked_bilstm", "hidden_sizes": (4,)},
        "integrator": {"type": "stacked_bilstm", "hidden_sizes": (3,)},
        "output": {"hidden_sizes": (7, 6)},
    }
    model, vocabulary = make_head(layers, {"labels": OPINIONS})
    examples = [{"tokens": tokens, "label": label} for tokens, label in zip(OPINION_TEXTS, OPINIONS, strict=True)]
    return model, Classification().collate(examples, vocabulary)


def equations(
    model: BiattentiveClassifier, vectors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The pooled text and the attention weights by the paper's equations, token by token."""
    (pre_encoder,) = model.pre_encoder.layers
    encoded = encode(model.encoder, np.maximum(linear(vectors, pre_encoder), 0))
    joined = []
    for token, weights in zip(encoded, attention(encoded, encoded), strict=True):
        context = sum(weight * other for weight, other in zip(weights, encoded, strict=True))
        joined.append(np.concatenate([token, token - context, token * context]))
    integrated = encode(model.integrator, np.stack(joined))
    (weights,) = attention(model.attentive_pooling.score.weight.detach().double().numpy(), integrated)
    attended = sum(weight * token for weight, token in zip(weights, integrated, strict=True))
    return np.concatenate([integrated.max(0), integrated.mean(0), integrated.min(0), attended]), weights


@torch.no_grad()
def test_the_papers_equations() -> None:
    model, batch = make_biattentive()
    output = model(batch)
    embedded = model.embedder(batch.tokens).inputs.double().numpy()
    for row, tokens in enumerate(OPINION_TEXTS):
        pooled, weights = equations(model, embedded[row, : len(tokens)])
        assert output.attention[row].tolist() == pytest.approx([*weights, *[0.0] * (5 - len(tokens))], abs=1e-6)
        for layer in model.output.layers:
            pooled = np.maximum(linear(pooled, layer), 0)
        assert output.logits[row].tolist() == pytest.approx(linear(pooled, model.scores), abs=1e-5)


@torch.no_grad()
def test_a_long_text_is_aligned_with_itself_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = make_biattentive()
    whole = model(batch).logits
    shapes: list[torch.Size] = []

    def recorded(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shapes.append(scores.shape)
        return masked_softmax(scores, mask)

    monkeypatch.setattr(attention_module, "_SCORES_AT_ONCE", 1)
    monkeypatch.setattr(attention_module, "masked_softmax", recorded)
    torch.testing.assert_close(model(batch).logits, whole)
    assert shapes == [(3, 1, 5)] * 5


def test_predictions() -> None:
    model, batch = make_biattentive()
    output = model(batch)
    for row, prediction in enumerate(model.decode(output, batch)):
        assert list(prediction["probabilities"]) == list(OPINIONS)
        assert list(prediction["probabilities"].values()) == pytest.approx(output.logits[row].softmax(0).tolist())
        assert prediction["label"] == max(OPINIONS, key=prediction["probabilities"].__getitem__)
        assert len(prediction["attention"]) == len(OPINION_TEXTS[row])
        assert sum(prediction["attention"]) == pytest.approx(1)
    assert [list(prediction) for prediction in model.decode(output, batch, probabilities=False)] == [["label"]] * 3
