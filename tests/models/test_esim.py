"""ESIM: its equations, one number at a time, and what it tells of a pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_tasks.metrics import Accuracy
from elmo_tasks.models.esim import Esim, EsimConfig
from elmo_tasks.tasks.text_pairs import TextPairs, TextPairsBatch
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

LABELS = ("contradiction", "entailment", "neutral")
PAIRS = (
    (["tarn", "vale", "moro", "orla", "vale"], ["orla", "moro"]),
    (["orla"], ["tarn", "tarn", "vale", "orla"]),
    (["vale", "tarn"], ["moro"]),
)


def make_model(**settings: Any) -> tuple[Esim, Vocabulary]:
    torch.manual_seed(4)
    config = EsimConfig.model_validate(
        {
            "embedder": {"words": {"size": 6}},
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (4,)},
            "projection": {"hidden_sizes": (5,)},
            "composition": {"type": "stacked_bilstm", "hidden_sizes": (3,)},
            "output": {"hidden_sizes": (7,), "activation": "tanh"},
            **settings,
        }
    )
    words = (*SPECIAL, "tarn", "vale", "moro", "orla")
    vocabulary = Vocabulary(words=words, num_trained_words=len(words), characters=SPECIAL, labels={"labels": LABELS})
    return config.build(vocabulary, config.embedder.build(vocabulary)).eval(), vocabulary


def make_batch(vocabulary: Vocabulary) -> TextPairsBatch:
    examples = [
        {"premise": premise, "hypothesis": hypothesis, "label": label}
        for (premise, hypothesis), label in zip(PAIRS, LABELS, strict=True)
    ]
    return TextPairs().collate(examples, vocabulary)


def linear(values: NDArray[np.float64], layer: torch.nn.Linear) -> NDArray[np.float64]:
    return values @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()


def encode(encoder: torch.nn.Module, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """One text alone, through the encoder."""
    inputs = torch.from_numpy(vectors).float().unsqueeze(0)
    return encoder(inputs, torch.ones(inputs.shape[:2], dtype=torch.bool))[0].detach().double().numpy()


def attention(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = [np.exp([token @ other for other in second]) for token in first]
    return np.stack([row / row.sum() for row in rows])


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
    model, vocabulary = make_model()
    batch = make_batch(vocabulary)
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


def test_loss_is_the_mean_cross_entropy() -> None:
    model, vocabulary = make_model()
    batch = make_batch(vocabulary)
    output = model(batch)
    probabilities = output.logits.softmax(1)[torch.arange(3), torch.arange(3)]
    assert model.loss(output, batch).item() == pytest.approx(-probabilities.log().mean().item())


def test_predictions() -> None:
    model, vocabulary = make_model()
    batch = make_batch(vocabulary)
    output = model(batch)
    for (premise, hypothesis), prediction in zip(PAIRS, model.decode(output, batch), strict=True):
        assert prediction["label"] == max(LABELS, key=prediction["probabilities"].__getitem__)
        assert sum(prediction["probabilities"].values()) == pytest.approx(1)
        assert np.shape(prediction["premise_attention"]) == (len(premise), len(hypothesis))
        assert np.shape(prediction["hypothesis_attention"]) == (len(hypothesis), len(premise))
    assert [list(prediction) for prediction in model.decode(output, batch, probabilities=False)] == [["label"]] * 3


def test_every_dropout_is_at_work_in_training() -> None:
    for settings in ({"alignment_dropout": 0.5}, {"dropout": 0.5}, {"output": {"hidden_sizes": (7,), "dropout": 0.5}}):
        model, vocabulary = make_model(**settings)
        batch = make_batch(vocabulary)
        assert torch.equal(model(batch).logits, model(batch).logits)
        model.train()
        assert not torch.equal(model(batch).logits, model(batch).logits)


def test_both_sides_share_their_encoders() -> None:
    """A pair of the same text is the same from both sides."""
    model, vocabulary = make_model()
    example = {"premise": PAIRS[0][0], "hypothesis": PAIRS[0][0]}
    batch = TextPairs().collate([example], vocabulary)
    (prediction,) = model.decode(model(batch), batch)
    assert prediction["premise_attention"] == prediction["hypothesis_attention"]


def test_the_metric() -> None:
    assert isinstance(make_model()[0].task.build_metric(), Accuracy)
