from typing import Any

import pytest
import torch

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.crf_tagger import CrfTagger
from elmo_tasks.models.labels import TagScores
from elmo_tasks.tasks.tagging import Tagging, TaggingBatch
from elmo_tasks.text.tag_schemes import find_fault
from elmo_tasks.text.vocabulary import Vocabulary
from tests.models.small import make_head, texts_of_lengths

BIOUL = ("O", "B-PER", "I-PER", "L-PER", "U-PER", "B-LOC", "I-LOC", "L-LOC", "U-LOC")


def make_tagger(labels: tuple[str, ...], **settings: Any) -> tuple[CrfTagger, Vocabulary]:
    encoder = {"type": "stacked_bilstm", "hidden_sizes": (5,)}
    return make_head({"type": "crf_tagger", "encoder": encoder, **settings}, {"tags": labels})


def make_batch(vocabulary: Vocabulary, *lengths: int) -> TaggingBatch:
    return Tagging().collate([{"tokens": text} for text in texts_of_lengths(*lengths)], vocabulary)


def test_predicts_only_valid_sequences() -> None:
    tagger, vocabulary = make_tagger(BIOUL)
    batch = make_batch(vocabulary, *range(1, 30))
    output = tagger(batch)
    for scale in (1.0, 30.0):
        noisy = type(output)(logits=scale * torch.randn_like(output.logits), mask=output.mask)
        for prediction in tagger.decode(noisy, batch):
            assert find_fault(prediction["tags"], "BIOUL") is None
            assert all(0 <= probability <= 1 for probability in prediction["probabilities"])


@pytest.mark.parametrize(("labels", "scheme"), [(BIOUL, "BIOUL"), (("NOUN", "VERB"), None)])
def test_details_are_the_marginals_of_at_most_five_tags(labels: tuple[str, ...], scheme: str | None) -> None:
    tagger, vocabulary = make_tagger(labels, tag_scheme=scheme)
    batch = make_batch(vocabulary, 1, 3)
    output = tagger(batch)
    marginals = tagger.crf.marginals(output.logits, output.mask)
    for row, (detail, length) in enumerate(zip(tagger.details(output, batch), (1, 3), strict=True)):
        assert len(detail["tag_probabilities"]) == length
        for token, tags in enumerate(detail["tag_probabilities"]):
            expected = dict(zip(labels, marginals[row, token].tolist(), strict=True))
            assert list(tags.values()) == sorted(expected.values(), reverse=True)[:5]
            assert all(expected[tag] == value for tag, value in tags.items())


def test_probabilities_are_the_marginals_of_the_chosen_tags() -> None:
    tagger, vocabulary = make_tagger(("NOUN", "VERB"), tag_scheme=None)
    batch = make_batch(vocabulary, 1, 3)
    output = tagger(batch)
    predictions = tagger.decode(output, batch)
    assert [len(prediction["probabilities"]) for prediction in predictions] == [1, 3]
    # With one token the marginal is a softmax.
    scores = output.logits[0, 0] + tagger.crf.start_transitions + tagger.crf.end_transitions
    assert predictions[0]["probabilities"][0] == pytest.approx(scores.softmax(0).max().item(), rel=1e-5)
    assert predictions[0]["tags"] == [("NOUN", "VERB")[int(scores.argmax())]]


def test_refuses_tags_of_another_scheme() -> None:
    with pytest.raises(ElmoTasksError, match=r"'L-PER' is not a tag of IOB2; set model\.tag_scheme"):
        make_tagger(BIOUL, tag_scheme="IOB2")


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
