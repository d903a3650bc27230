"""ESIM and decomposable attention: their equations, one number at a time, and what they predict for a pair."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_tasks.models.inference import DecomposableAttention, Esim
from elmo_tasks.tasks.text_pairs import TextPairs
from elmo_tasks.text.vocabulary import Vocabulary
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


RELATIONS = ("contradiction", "entailment", "neutral")
ATTENDED = (
    (["tarn", "vale", "moro", "orla", "vale"], ["orla", "moro"]),
    (["orla"], ["tarn", "tarn", "vale", "orla"]),
)
ATTENDED_EXAMPLES = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in ATTENDED]


def make_model(**settings: Any) -> tuple[DecomposableAttention, Vocabulary]:
    layers = {"attend": {"hidden_sizes": (5, 4)}, "compare": {"hidden_sizes": (7,)}}
    return make_head({"type": "decomposable_attention", **layers, **settings}, {"labels": RELATIONS})


@torch.no_grad()
@pytest.mark.parametrize("end", [None, "END"])
@pytest.mark.parametrize("output", [None, {"hidden_sizes": (3,)}])
def test_the_equations_of_decomposable_attention(output: Any, end: str | None) -> None:
    """Parikh et al. (2016), equations 1 to 6."""
    model, vocabulary = make_model(output=output, end_token=end)
    batch: Any = model.task.collate(ATTENDED_EXAMPLES, vocabulary)
    result = model(batch)
    predictions = model.decode(result, batch)
    for row, pair in enumerate(ATTENDED):
        rows = [[vocabulary.word_id(word) for word in [*text, *([end] if end else [])]] for text in pair]
        first, second = (model.embedder.words.trained[each] for each in rows)  # type: ignore[union-attr]
        scores = model.attend(first) @ model.attend(second).T
        premise_weights, hypothesis_weights = scores.softmax(1), scores.T.softmax(1)
        compared = [
            model.compare(torch.cat([own, weights @ other], dim=1)).sum(0)
            for own, other, weights in ((first, second, premise_weights), (second, first, hypothesis_weights))
        ]
        summed = torch.cat(compared)
        logits = model.scores(model.output(summed) if model.output else summed)
        assert result.logits[row].tolist() == pytest.approx(logits.tolist(), abs=1e-5)
        for key, weights, size in (
            ("premise_attention", premise_weights, (len(pair[0]), len(pair[1]))),
            ("hypothesis_attention", hypothesis_weights, (len(pair[1]), len(pair[0]))),
        ):
            found = torch.tensor(predictions[row][key])
            assert found.shape == size
            torch.testing.assert_close(found, weights[: size[0], : size[1]])
            assert (found.sum(1) < 0.999).all() == bool(end)
