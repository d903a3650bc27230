from __future__ import annotations

from typing import Any

import pytest
import torch

from elmo_tasks.models.labels import TagScores
from elmo_tasks.models.simple_tagger import SimpleTagger
from elmo_tasks.tasks.tagging import TaggingBatch
from tests.models.small import make_head

TAGS = ("B-LOC", "I-LOC", "O")
TEXTS = [["tarn", "vale", "tarn"], ["vale"]]


def make_tagger(**settings: Any) -> tuple[SimpleTagger, TaggingBatch]:
    encoder = {"type": "stacked_bilstm", "hidden_sizes": (5,)}
    tagger, vocabulary = make_head({"type": "simple_tagger", "encoder": encoder, **settings}, {"tags": TAGS})
    return tagger, tagger.task.collate([{"tokens": text} for text in TEXTS], vocabulary)


def test_each_token_has_the_tag_of_its_highest_score_whatever_its_neighbours_have() -> None:
    tagger, batch = make_tagger(tag_scheme="IOB2")
    logits = torch.tensor([[[0.0, 1, 3], [0, 2, 1], [1, 0, 0]], [[0, 5, 4], [9, 0, 0], [9, 0, 0]]])
    output = TagScores(logits=logits, mask=batch.tokens.mask)
    predictions = tagger.decode(output, batch)
    assert [prediction["tags"] for prediction in predictions] == [["O", "I-LOC", "B-LOC"], ["I-LOC"]]
    expected = logits.softmax(2).max(2).values
    assert predictions[0]["probabilities"] == pytest.approx(expected[0].tolist())
    assert predictions[1]["probabilities"] == pytest.approx(expected[1, :1].tolist())
    tags_alone = [{"tags": prediction["tags"]} for prediction in predictions]
    assert tagger.decode(output, batch, probabilities=False) == tags_alone


@torch.no_grad()
def test_scores_are_a_linear_function_of_what_the_encoder_gives() -> None:
    tagger, batch = make_tagger(dropout=0.5)
    output = tagger(batch)
    encoded = tagger.encoder(tagger.embedder(batch.tokens).inputs, batch.tokens.mask)
    expected = encoded @ tagger.projection.weight.T + tagger.projection.bias
    torch.testing.assert_close(output.logits, expected)
    assert torch.equal(output.mask, batch.tokens.mask)
    assert not torch.equal(tagger.train()(batch).logits, output.logits)
