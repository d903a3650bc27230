"""The head against the library's own model: pieces, token types, the tags of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch

transformers = pytest.importorskip("transformers")

from elmo_tasks.extras.transformers.srl_bert import PieceScores, SrlBert, SrlBertConfig  # noqa: E402
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary  # noqa: E402
from tests.extras.transformers.tiny_bert import library_states  # noqa: E402

TAGS = ("O", "B-V", "B-A0", "I-A0")
EXAMPLES: list[dict[str, Any]] = [
    {"tokens": ["mary", "went", "to", "the", "boeing", "."], "predicate": 1},
    {"tokens": ["mary", "went"], "predicate": 0},
    {"tokens": ["the", "\u2003", "."], "predicate": 0},
]
PIECES_OF = [
    ["ma", "##ry", "went", "to", "the", "boe", "##ing", "."],
    ["ma", "##ry", "went"],
    ["the", "."],
]
TYPES = [[0, 0, 1, 0, 0, 0, 0, 0], [1, 1, 0], [1, 0]]
STARTS = [[1, 3, 4, 5, 6, 8], [1, 3], [1, 2, 2]]


def head(bert: Path, **settings: Any) -> tuple[SrlBert, Vocabulary]:
    transformer = {"model": str(bert), "layers": (-1,), "dropout": 0.0}
    config = SrlBertConfig.model_validate({"type": "srl_bert", "embedder": {"transformer": transformer}, **settings})
    vocabulary = Vocabulary(words=SPECIAL, num_trained_words=len(SPECIAL), characters=SPECIAL, labels={"tags": TAGS})
    torch.manual_seed(2)
    model = config.build(vocabulary, config.embedder.build(vocabulary)).eval()
    assert isinstance(model, SrlBert)
    torch.nn.init.normal_(model.projection.weight)
    return model, vocabulary


def expected_logits(bert: Path, model: SrlBert, row: int) -> torch.Tensor:
    found = library_states(bert, ("[CLS]", *PIECES_OF[row], "[SEP]"), [0, *TYPES[row], 0])
    with torch.no_grad():
        return model.projection(found[-1])


def test_scores_of_pieces_with_the_predicate_marked(bert: Path) -> None:
    model, vocabulary = head(bert)
    output = model(model.task.collate(EXAMPLES, vocabulary))
    for row, pieces in enumerate(PIECES_OF):
        wanted = expected_logits(bert, model, row)
        torch.testing.assert_close(output.logits[row, : len(pieces) + 2], wanted, atol=1e-5, rtol=1e-5)
        assert output.starts[row, : len(STARTS[row])].tolist() == STARTS[row]


def test_a_batch_gives_what_each_sentence_gives(bert: Path) -> None:
    model, vocabulary = head(bert)

    def decoded(examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        batch = model.task.collate(examples, vocabulary)
        return model.decode(model(batch), batch)

    together = decoded(EXAMPLES)
    for example, found in zip(EXAMPLES, together, strict=True):
        (alone,) = decoded([example])
        assert alone["tags"] == found["tags"]
        assert alone["probabilities"] == pytest.approx(found["probabilities"], abs=1e-5)
        assert len(found["tags"]) == len(example["tokens"])


def test_lower_case_is_asked_for(bert: Path) -> None:
    capitals = [{"tokens": ["MARY", "went"], "predicate": 0}]
    (plain, vocabulary), (lower, _) = head(bert), head(bert, lowercase=True)
    assert plain(plain.task.collate(capitals, vocabulary)).mask.sum() == 4  # [CLS] [UNK] went [SEP]
    assert lower(lower.task.collate(capitals, vocabulary)).mask.sum() == 5


def test_long_sentences_are_read_in_windows(bert: Path) -> None:
    model, vocabulary = head(bert)
    words = ["the", "went", "to", ".", "went"] * 5  # BERT has positions for ten
    batch = model.task.collate([{"tokens": words, "predicate": 7}], vocabulary)
    output = model(batch)
    assert output.logits.shape[:2] == (1, 27)
    assert output.logits.isfinite().all()
    assert len(model.decode(output, batch)[0]["tags"]) == 25
    shorter = {"tokens": words[:10], "predicate": 7}  # the first window is that of a shorter sentence
    first = model(model.task.collate([shorter], vocabulary)).logits
    torch.testing.assert_close(output.logits[0, :7], first[0, :7], atol=1e-5, rtol=1e-5)


def test_what_it_is_not_made_for() -> None:
    with pytest.raises(ValueError, match="expected only a transformer"):
        SrlBertConfig.model_validate({"type": "srl_bert", "embedder": {"words": {"size": 2}}})


def test_the_loss_is_that_of_first_pieces(bert: Path) -> None:
    model, vocabulary = head(bert)
    examples = [{**EXAMPLES[0], "tags": ["B-A0", "B-V", "O", "O", "O", "O"]}]
    batch = model.task.collate(examples, vocabulary)
    likelihoods = expected_logits(bert, model, 0).log_softmax(1)[STARTS[0]]
    wanted = -likelihoods[range(6), [2, 1, 0, 0, 0, 0]].sum()
    torch.testing.assert_close(model.loss(model(batch), batch), wanted, atol=1e-4, rtol=1e-4)


def test_sums_keep_two_digits_after_the_point(bert: Path) -> None:
    """A multiple of 1/128 is added to 100,000 in single precision: a smaller difference is none, and the first wins."""
    model, _ = head(bert)
    mask, starts, batch = torch.ones(1, 1, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.int64), cast(Any, None)
    for shares, tag in (
        ([0.398, 0.402, 0.1, 0.1], "O"),
        ([0.398, 0.41, 0.1, 0.092], "B-V"),
        ([0.1, 0.1, 0.3, 0.5], "B-A0"),  # an I-A0 is not allowed there
    ):
        output = PieceScores(torch.tensor([[shares]]).log(), mask, starts, mask)
        (found,) = model.decode(output, batch)
        assert found == {"tags": [tag], "probabilities": [pytest.approx(shares[TAGS.index(tag)], abs=1e-6)]}
