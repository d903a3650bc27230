from __future__ import annotations

import pytest
import torch

from elmo_tasks.models.labels import TagScores
from tests.models.small import make_head

TAGS = ("B-LOC", "I-LOC", "O")
TEXTS = [["tarn", "vale", "tarn"], ["vale"]]


def test_each_token_has_the_tag_of_its_highest_score_whatever_its_neighbours_have() -> None:
    encoder = {"type": "stacked_bilstm", "hidden_sizes": (5,)}
    settings = {"type": "simple_tagger", "encoder": encoder, "tag_scheme": "IOB2"}
    tagger, vocabulary = make_head(settings, {"tags": TAGS})
    batch = tagger.task.collate([{"tokens": text} for text in TEXTS], vocabulary)
    logits = torch.tensor([[[0.0, 1, 3], [0, 2, 1], [1, 0, 0]], [[0, 5, 4], [9, 0, 0], [9, 0, 0]]])
    output = TagScores(logits=logits, mask=batch.tokens.mask)
    predictions = tagger.decode(output, batch)
    assert [prediction["tags"] for prediction in predictions] == [["O", "I-LOC", "B-LOC"], ["I-LOC"]]
    expected = logits.softmax(2).max(2).values
    assert predictions[0]["probabilities"] == pytest.approx(expected[0].tolist())
    assert predictions[1]["probabilities"] == pytest.approx(expected[1, :1].tolist())
    tags_alone = [{"tags": prediction["tags"]} for prediction in predictions]
    assert tagger.decode(output, batch, probabilities=False) == tags_alone
