"""Decomposable attention: its equations, one number at a time, and what it predicts for a pair."""

from typing import Any

import pytest
import torch

from elmo_tasks.extras.other_tasks.decomposable_attention import DecomposableAttention
from elmo_tasks.text.vocabulary import Vocabulary
from tests.models.small import make_head

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
