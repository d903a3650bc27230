"""The biattentive classification network: its equations, one number at a time, and what it tells of a text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_tasks.metrics import Accuracy
from elmo_tasks.models.biattentive_classifier import BiattentiveClassifier, BiattentiveClassifierConfig
from elmo_tasks.modules import attention
from elmo_tasks.modules.attention import masked_softmax
from elmo_tasks.tasks.classification import Classification, ClassificationBatch
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

LABELS = ("good", "bad", "odd")
TEXTS = (["tarn", "vale", "moro", "orla", "vale"], ["orla"], ["vale", "tarn", "tarn"])


def make_classifier(**settings: Any) -> tuple[BiattentiveClassifier, Vocabulary]:
    torch.manual_seed(4)
    config = BiattentiveClassifierConfig.model_validate(
        {
            "embedder": {"words": {"size": 6}},
            "pre_encoder": {"hidden_sizes": (5,)},
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (4,)},
            "integrator": {"type": "stacked_bilstm", "hidden_sizes": (3,)},
            "output": {"hidden_sizes": (7, 6)},
            **settings,
        }
    )
    words = (*SPECIAL, "tarn", "vale", "moro", "orla")
    vocabulary = Vocabulary(words=words, num_trained_words=len(words), characters=SPECIAL, labels={"labels": LABELS})
    return config.build(vocabulary, config.embedder.build(vocabulary)).eval(), vocabulary


def make_batch(vocabulary: Vocabulary) -> ClassificationBatch:
    examples = [{"tokens": tokens, "label": label} for tokens, label in zip(TEXTS, LABELS, strict=True)]
    return Classification().collate(examples, vocabulary)


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def relu(values: NDArray[np.float64], layer: torch.nn.Linear) -> NDArray[np.float64]:
    return np.maximum(values @ layer.weight.detach().numpy().T + layer.bias.detach().numpy(), 0)


def encode(encoder: torch.nn.Module, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """One text alone, through the encoder."""
    inputs = torch.from_numpy(vectors).float().unsqueeze(0)
    return encoder(inputs, torch.ones(inputs.shape[:2], dtype=torch.bool))[0].detach().double().numpy()


def equations(
    model: BiattentiveClassifier, vectors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The pooled text and the attention weights by the paper's equations, token by token."""
    (pre_encoder,) = model.pre_encoder.layers
    encoded = encode(model.encoder, np.stack([relu(vector, pre_encoder) for vector in vectors]))
    joined = []
    for token in encoded:
        weights = softmax(np.array([token @ other for other in encoded]))
        context = sum(weight * other for weight, other in zip(weights, encoded, strict=True))
        joined.append(np.concatenate([token, token - context, token * context]))
    integrated = encode(model.integrator, np.stack(joined))
    vector = model.attentive_pooling.score.weight[0].detach().numpy()
    weights = softmax(np.array([token @ vector for token in integrated]))
    attended = sum(weight * token for weight, token in zip(weights, integrated, strict=True))
    return np.concatenate([integrated.max(0), integrated.mean(0), integrated.min(0), attended]), weights


@torch.no_grad()
def test_the_papers_equations() -> None:
    model, vocabulary = make_classifier()
    batch = make_batch(vocabulary)
    output = model(batch)
    embedded = model.embedder(batch.tokens).inputs.double().numpy()
    for row, tokens in enumerate(TEXTS):
        pooled, weights = equations(model, embedded[row, : len(tokens)])
        assert output.attention[row].tolist() == pytest.approx([*weights, *[0.0] * (5 - len(tokens))], abs=1e-6)
        for layer in model.output.layers:
            pooled = relu(pooled, layer)
        logits = pooled @ model.scores.weight.numpy().T + model.scores.bias.numpy()
        assert output.logits[row].tolist() == pytest.approx(logits, abs=1e-5)


@torch.no_grad()
def test_a_long_text_is_aligned_with_itself_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, vocabulary = make_classifier()
    batch = make_batch(vocabulary)
    whole = model(batch).logits
    shapes: list[torch.Size] = []

    def recorded(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shapes.append(scores.shape)
        return masked_softmax(scores, mask)

    monkeypatch.setattr(attention, "_SCORES_AT_ONCE", 1)
    monkeypatch.setattr(attention, "masked_softmax", recorded)
    torch.testing.assert_close(model(batch).logits, whole)
    assert shapes == [(3, 1, 5)] * 5


def test_loss_is_the_mean_cross_entropy() -> None:
    model, vocabulary = make_classifier()
    batch = make_batch(vocabulary)
    output = model(batch)
    probabilities = output.logits.softmax(1)[torch.arange(3), torch.arange(3)]
    assert model.loss(output, batch).item() == pytest.approx(-probabilities.log().mean().item())


def test_predictions() -> None:
    model, vocabulary = make_classifier()
    batch = make_batch(vocabulary)
    output = model(batch)
    for row, prediction in enumerate(model.decode(output, batch)):
        assert list(prediction["probabilities"]) == list(LABELS)
        assert list(prediction["probabilities"].values()) == pytest.approx(output.logits[row].softmax(0).tolist())
        assert prediction["label"] == max(LABELS, key=prediction["probabilities"].__getitem__)
        assert len(prediction["attention"]) == len(TEXTS[row])
        assert sum(prediction["attention"]) == pytest.approx(1)
    assert [list(prediction) for prediction in model.decode(output, batch, probabilities=False)] == [["label"]] * 3


def test_every_dropout_is_at_work_in_training() -> None:
    for settings in (
        {"embedding_dropout": 0.5},
        {"integrator_dropout": 0.5},
        {"pre_encoder": {"hidden_sizes": (5,), "dropout": 0.5}},
    ):
        model, vocabulary = make_classifier(**settings)
        batch = make_batch(vocabulary)
        assert torch.equal(model(batch).logits, model(batch).logits)
        model.train()
        assert not torch.equal(model(batch).logits, model(batch).logits)


def test_maxout_takes_the_place_of_relu() -> None:
    model, vocabulary = make_classifier(output={"hidden_sizes": (7,), "activation": "maxout", "pieces": 2})
    assert model.output.layers[0].weight.shape == (14, 4 * 6)
    assert model(make_batch(vocabulary)).logits.shape == (3, 3)


def test_the_metric() -> None:
    assert isinstance(make_classifier()[0].task.build_metric(), Accuracy)
