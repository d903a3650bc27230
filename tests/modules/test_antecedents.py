"""Scores of antecedents against the paper's equation, pair by pair."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmo_tasks.modules import coreference
from elmo_tasks.modules.coreference import AntecedentScorer, previous

SIZE = 5
DOCUMENTS = torch.tensor([0] * 9 + [1] + [2] * 4)
SPEAKERS = torch.tensor([1, 2, 1, 0, 1, 2, 2, 0, 1, 1, 0, 0, 1, 1])
GENRES = torch.tensor([1] * 9 + [0] + [2] * 4)


def make_scorer(max_antecedents: int) -> AntecedentScorer:
    torch.manual_seed(2)
    scorer = AntecedentScorer(SIZE, 3, 2, hidden_sizes=(6, 4), dropout=0.3, max_antecedents=max_antecedents).eval()
    assert not scorer.embeddings["genre"].any()
    torch.nn.init.normal_(scorer.embeddings["genre"])
    return scorer


def bucket(distance: int) -> int:
    for number, largest in enumerate((1, 2, 3, 4, 7, 15, 31, 63)):
        if distance <= largest:
            return number
    return 8


def pair_score(scorer: AntecedentScorer, vectors: Tensor, mentions: Tensor, span: int, antecedent: int) -> Tensor:
    if 0 in (int(SPEAKERS[span]), int(SPEAKERS[antecedent])):
        speakers = 0
    else:
        speakers = 1 if SPEAKERS[span] == SPEAKERS[antecedent] else 2
    one, other = vectors[span], vectors[antecedent]
    rows = {"speaker": speakers, "genre": int(GENRES[span]), "distance": bucket(span - antecedent)}
    features = [scorer.embeddings[name][row] for name, row in rows.items()]
    feed_forward = scorer.scorer
    hidden = torch.relu(feed_forward.first(torch.cat([one, other, one * other, *features])))
    return feed_forward.output(feed_forward.rest(hidden))[0] + mentions[span] + mentions[antecedent]


@pytest.mark.parametrize("max_antecedents", [1, 3, 100])
@pytest.mark.parametrize("chunk_numbers", [1, 70, 1 << 24])
def test_scores(max_antecedents: int, chunk_numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coreference, "_CHUNK_NUMBERS", chunk_numbers)
    scorer = make_scorer(max_antecedents)
    vectors, mentions = torch.randn(14, SIZE), torch.randn(14)
    chunks: list[int] = []
    hook = scorer.scorer.output.register_forward_hook(lambda _, inputs, __: chunks.append(len(inputs[0])))
    scores = scorer(vectors, mentions, DOCUMENTS, SPEAKERS, GENRES)
    hook.remove()
    longest = min(max_antecedents, 8)
    assert scores.shape == (14, longest + 1)
    expected = torch.full((14, longest + 1), float("-inf"))
    expected[:, -1] = 0
    for span in range(14):
        for antecedent in range(max(0, span - longest), span):
            if DOCUMENTS[span] == DOCUMENTS[antecedent]:
                column = antecedent - span + longest
                expected[span, column] = pair_score(scorer, vectors, mentions, span, antecedent)
    torch.testing.assert_close(scores, expected)
    most = max(chunk_numbers, longest * SIZE)  # in a chunk, each of which is as large as that allows
    assert sum(chunks) == 14
    assert all(spans * longest * SIZE <= most for spans in chunks)
    assert all((spans + 1) * longest * SIZE > most for spans in chunks[:-1])


def test_features_have_as_many_embeddings_as_values() -> None:
    assert {name: len(table) for name, table in make_scorer(5).embeddings.items()} == {
        "speaker": 3,
        "genre": 3,
        "distance": 9,
    }


def test_a_single_span_has_no_antecedent() -> None:
    one = torch.zeros(1, dtype=torch.int64)
    scores = make_scorer(100)(torch.randn(1, SIZE), torch.randn(1), one, one, one)
    assert scores.tolist() == [[float("-inf"), 0.0]]


def test_distances_have_the_buckets_of_the_paper() -> None:
    found = coreference._distance_buckets(100, torch.device("cpu")).tolist()
    assert found == [bucket(distance) for distance in range(100, 0, -1)]


@pytest.mark.parametrize("rows", [slice(None), slice(0, 2), slice(1, 4), slice(4, 9)])
def test_previous(rows: slice) -> None:
    values = torch.tensor([1, 2, 3, 4, 5])
    expected = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]])
    assert torch.equal(previous(values, 3, rows), expected[rows])
    table = torch.stack([values, 10 * values], dim=1)
    assert torch.equal(previous(table, 3, rows), torch.stack([expected[rows], 10 * expected[rows]], dim=2))
