"""ESIM: its equations, one number at a time, and what it predicts for a pair."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_tasks.models.inference import Esim
from elmo_tasks.tasks.text_pairs import TextPairs
from tests.models.small import attention, encode, linear, make_head

PAIRS = (
    (["tarn", "vale", "moro", "orla", "vale"], ["orla", "moro"]),
    (["orla"], ["tarn", "tarn", "vale", "orla"]),
    (["vale", "tarn"], ["moro"]),
)
MODEL = {
    "type": "esim",
    "encoder": {"type": "stacked_bilstm", "hidden_sizes": (4,)},
    "projection": {"hidden_sizes": (5,)},
    "composition": {"type": "stacked_bilstm", "hidden_sizes": (3,)},
    "output": {"hidden_sizes": (7,), "activation": "tanh"},
}
LABELS = {"labels": ("contradiction", "entailment", "neutral")}


def compose(
    model: Esim, own: NDArray[np.float64], other: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One side's part of the pooled pair."""
    compared = []
    for token, row in zip(own, weights, strict=True):
        aligned = sum(weight * vector for weight, vector in zip(row, other, strict=True))
        compared.append(np.concatenate([token, aligned, token - aligned, token * aligned]))
    (projection,) = model.projection.layers
    composed = encode(model.composition, np.maximum(linear(np.stack(compared), projection), 0))
    return np.concatenate([composed.mean(0), composed.max(0)])


@torch.no_grad()
def test_the_papers_equations() -> None:
    model, vocabulary = make_head(MODEL, LABELS)
    batch = TextPairs().collate([{"premise": premise, "hypothesis": other} for premise, other in PAIRS], vocabulary)
    output = model(batch)
    predictions = model.decode(output, batch)
    embedded = [model.embedder(tokens).inputs.double().numpy() for tokens in (batch.premise, batch.hypothesis)]
    for row, pair in enumerate(PAIRS):
        premise, hypothesis = (
            encode(model.encoder, vectors[row, : len(tokens)]) for vectors, tokens in zip(embedded, pair, strict=True)
        )
        weights = attention(premise, hypothesis), attention(hypothesis, premise)
        np.testing.assert_allclose(predictions[row]["premise_attention"], weights[0], atol=1e-6)
        np.testing.assert_allclose(predictions[row]["hypothesis_attention"], weights[1], atol=1e-6)
        pooled = np.concatenate(
            [compose(model, premise, hypothesis, weights[0]), compose(model, hypothesis, premise, weights[1])]
        )
        logits = linear(np.tanh(linear(pooled, model.output.layers[0])), model.scores)
        assert output.logits[row].tolist() == pytest.approx(logits, abs=1e-5)
        assert predictions[row]["label"] == LABELS["labels"][logits.argmax()]
        assert sum(predictions[row]["probabilities"].values()) == pytest.approx(1)
