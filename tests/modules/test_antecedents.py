"""Scores of antecedents, against the papers' equations, pair by pair."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.modules import antecedents
from elmo_tasks.modules.antecedents import AntecedentScorer, Spans

SIZE = 5  # of the vectors that are compared
DOCUMENTS = torch.tensor([0] * 9 + [1] + [2] * 4)
SPEAKERS = torch.tensor([1, 2, 1, 0, 1, 2, 2, 0, 1, 1, 0, 0, 1, 1])
GENRES = torch.tensor([1] * 9 + [0] + [2] * 4)


def make_scorer(max_antecedents: int, **settings: Any) -> AntecedentScorer:
    torch.manual_seed(2)
    scorer = AntecedentScorer(SIZE, 3, 2, (6, 4), dropout=0.3, max_antecedents=max_antecedents, **settings).eval()
    if "genre" in scorer.embeddings:
        assert not scorer.embeddings["genre"].any()
        torch.nn.init.normal_(scorer.embeddings["genre"])
    return scorer


def random_spans() -> Spans:
    return Spans(torch.randn(14, SIZE), torch.randn(14), DOCUMENTS, SPEAKERS, GENRES)


def bucket(distance: int) -> int:
    for number, largest in enumerate((1, 2, 3, 4, 7, 15, 31, 63)):
        if distance <= largest:
            return number
    return 8


def pair_score(scorer: AntecedentScorer, spans: Spans, span: int, antecedent: int) -> Tensor:
    vectors, mentions = spans.vectors, spans.mention_scores
    if 0 in (int(SPEAKERS[span]), int(SPEAKERS[antecedent])):
        speakers = 0
    else:
        speakers = 1 if SPEAKERS[span] == SPEAKERS[antecedent] else 2
    one, other = vectors[span], vectors[antecedent]
    rows = {"speaker": speakers, "genre": int(GENRES[span]), "distance": bucket(span - antecedent)}
    rows = {name: row for name, row in rows.items() if name in scorer.embeddings}
    features = [scorer.embeddings[name][row] for name, row in rows.items()]
    feed_forward = scorer.scorer
    hidden = torch.relu(feed_forward.first(torch.cat([one, other, one * other, *features])))
    return feed_forward.output(feed_forward.rest(hidden))[0] + mentions[span] + mentions[antecedent]


def expected_scores(
    scorer: AntecedentScorer, spans: Spans, coarse: bool, order: int, count: int
) -> list[dict[int, Tensor]]:
    """Of each span the scores of its candidates, as Lee et al. (2018) write them."""
    vectors, mentions = spans.vectors, spans.mention_scores

    def coarse_score(span: int, other: int) -> Tensor:
        return vectors[span] @ scorer.coarse(vectors[other]) if coarse else torch.tensor(0.0)  # type: ignore[misc]

    def of_span(current: Spans, span: int, candidates: list[int]) -> dict[int, Tensor]:
        return {other: pair_score(scorer, current, span, other) + coarse_score(span, other) for other in candidates}

    def refined(span: int, scores: dict[int, Tensor], current: Spans) -> Tensor:
        numbers = [*scores, span]
        weights = torch.stack([*scores.values(), torch.tensor(0.0)]).softmax(0)
        mean = sum(
            (weight * current.vectors[number] for weight, number in zip(weights, numbers, strict=True)), Tensor([0])
        )
        share = scorer.gate(torch.cat([current.vectors[span], mean])).sigmoid()  # type: ignore[misc]
        return share * current.vectors[span] + (1 - share) * mean

    chosen = []
    for span in range(14):
        before = [other for other in range(span) if DOCUMENTS[other] == DOCUMENTS[span]]
        if coarse:
            before.sort(key=lambda other: -(mentions[other] + coarse_score(span, other)).item())
            chosen.append(sorted(before[:count]))
        else:
            chosen.append(before[-count:])
    current = spans
    scores = [of_span(current, span, chosen[span]) for span in range(14)]
    for _ in range(order - 1):
        vectors_now = torch.stack([refined(span, scores[span], current) for span in range(14)])
        current = dataclasses.replace(spans, vectors=vectors_now)
        scores = [of_span(current, span, chosen[span]) for span in range(14)]
    return scores


@pytest.mark.parametrize("as_allennlp", [False, True])
@pytest.mark.parametrize(
    ("most", "coarse", "order"),
    [(1, False, 1), (3, False, 1), (100, False, 1), (3, True, 1), (3, False, 2), (3, True, 2), (3, True, 3)],
)
@pytest.mark.parametrize("chunk_numbers", [1, 70, 1 << 24])
def test_scores_of_antecedents(
    as_allennlp: bool, most: int, coarse: bool, order: int, chunk_numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(antecedents, "CHUNK_NUMBERS", chunk_numbers)
    scorer = make_scorer(most, coarse_to_fine=coarse, order=order, as_allennlp=as_allennlp)
    spans, chunks = random_spans(), list[int]()
    scorer.scorer.output.register_forward_hook(lambda _, inputs, __: chunks.append(len(inputs[0])))
    numbers, scores = scorer(spans)
    columns = min(most, 8)
    at_once = max(1, chunk_numbers // (columns * SIZE))
    assert chunks == [len(part) for part in torch.arange(14).split(at_once)] * order
    assert scores.shape == (14, columns + 1)
    assert not scores[:, -1].any()
    for row, expected in enumerate(expected_scores(scorer, spans, coarse, order, most)):
        candidates = numbers[row][numbers[row] >= 0].tolist()
        assert candidates == list(expected)
        found = scores[row, :-1][numbers[row] >= 0]
        torch.testing.assert_close(found, torch.stack([*expected.values()]) if expected else found)
        assert torch.isneginf(scores[row, :-1][numbers[row] < 0]).all()
    scores[scores > -torch.inf].square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in scorer.parameters())
    assert all(p.grad.any() for name, p in scorer.named_parameters() if name.startswith(("coarse", "gate")))  # type: ignore[union-attr]


def test_without_a_choice_all_spans_before_are_candidates() -> None:
    scorer, spans = make_scorer(2, coarse_to_fine=True), random_spans()
    numbers, scores = scorer(spans, choose=False)
    assert [[number for number in row if number >= 0] for row in numbers.tolist()] == [
        [other for other in range(span) if DOCUMENTS[other] == DOCUMENTS[span]] for span in range(14)
    ]
    fewer, chosen = scorer(spans)
    kept = {
        (row, number): score
        for row in range(14)
        for number, score in zip(fewer[row].tolist(), chosen[row], strict=False)
    }
    for row in range(14):
        for number, score in zip(numbers[row].tolist(), scores[row], strict=False):
            if number >= 0 and (row, number) in kept:
                torch.testing.assert_close(score, kept[row, number])


def test_features_have_as_many_embeddings_as_values() -> None:
    assert {name: len(table) for name, table in make_scorer(5).embeddings.items()} == {
        "speaker": 3,
        "genre": 3,
        "distance": 9,
    }


def test_a_single_span_has_no_antecedent() -> None:
    one = torch.zeros(1, dtype=torch.int64)
    spans = Spans(torch.randn(1, SIZE), torch.randn(1), one, one, one)
    for settings in ({}, {"coarse_to_fine": True, "order": 2}):
        numbers, scores = make_scorer(100, **settings)(spans)
        assert numbers.tolist() == [[-1]]
        assert scores.tolist() == [[float("-inf"), 0.0]]
