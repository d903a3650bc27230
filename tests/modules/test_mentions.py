"""What coreference is computed with, against the paper's equations, span by span and pair by pair."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_tasks.modules import mentions
from elmo_tasks.modules.mentions import SpanRepresentation, TokenVectors, best_non_crossing_spans

TOKENS_LEFT = torch.tensor([left for length in (5, 1, 3) for left in range(length, 0, -1)])
WIDTH = 4


@pytest.fixture(params=[(6, 5), (5,), (4, 4, 2)], ids=str)
def spans(request: pytest.FixtureRequest) -> SpanRepresentation:
    torch.manual_seed(5)
    return SpanRepresentation(3, 4, WIDTH, feature_size=2, hidden_sizes=request.param, dropout=0.3).eval()


@pytest.fixture
def tokens() -> TokenVectors:
    return TokenVectors(inputs=torch.randn(9, 3), encoded=torch.randn(9, 4))


def vector(spans: SpanRepresentation, tokens: TokenVectors, start: int, end: int) -> Tensor:
    """g = [x*_start; x*_end; sum_t a_t x_t; phi], a the softmax of w · FFNN(x*_t) over the span."""
    scorer: Any = spans.attention
    logits = [scorer.output(scorer.rest(torch.relu(scorer.first(tokens.encoded[t])))) for t in range(start, end + 1)]
    weights = torch.cat(logits).softmax(0)
    head = (weights.unsqueeze(1) * tokens.inputs[start : end + 1]).sum(0)
    return torch.cat([tokens.encoded[start], tokens.encoded[end], head, spans.width_embedding[end - start]])


def all_spans() -> list[tuple[int, int]]:
    return [(token, token + width) for token in range(9) for width in range(min(WIDTH, int(TOKENS_LEFT[token])))]


def test_vectors_of_spans(spans: SpanRepresentation, tokens: TokenVectors) -> None:
    chosen = all_spans()
    starts, ends = torch.tensor(chosen).unbind(1)
    found = spans.vectors(spans.features(tokens), starts, ends)
    expected = torch.stack([vector(spans, tokens, start, end) for start, end in chosen])
    assert found.shape == (len(chosen), spans.output_size)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("few_widths", [WIDTH - 1, WIDTH])
@pytest.mark.parametrize("chunk", [1, 4, 2048])
def test_mention_scores(
    spans: SpanRepresentation, tokens: TokenVectors, chunk: int, few_widths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mentions, "_CHUNK_TOKENS", chunk)
    monkeypatch.setattr(mentions, "_FEW_WIDTHS", few_widths)
    scorer = spans.mention_scorer
    expected = torch.full((9, WIDTH), float("-inf"))
    for start, end in all_spans():
        hidden = torch.relu(scorer.first(vector(spans, tokens, start, end)))
        expected[start, end - start] = scorer.output(scorer.rest(hidden))
    torch.testing.assert_close(spans.mention_scores(spans.features(tokens), TOKENS_LEFT), expected)


def test_extreme_attention_is_finite(spans: SpanRepresentation, tokens: TokenVectors) -> None:
    with torch.no_grad():
        spans.get_parameter("attention.output.weight").mul_(1e4)
    scores = spans.mention_scores(spans.features(tokens), TOKENS_LEFT)
    scores[scores > float("-inf")].sum().backward()
    assert all(p.grad.isfinite().all() for p in spans.parameters() if p.grad is not None)


def slow(scores: NDArray[np.float32], count: int) -> list[tuple[int, int]]:
    """As the paper says it, span by span and pair by pair."""
    num_tokens, longest = scores.shape
    spans = [
        (-scores[start, width], start, start + width)
        for start in range(num_tokens)
        for width in range(longest)
        if scores[start, width] != -np.inf
    ]
    kept: list[tuple[int, int]] = []
    for _, start, end in sorted(spans):
        crosses = any(s < start <= e < end or start < s <= end < e for s, e in kept)
        if len(kept) < count and not crosses:
            kept.append((start, end))
    return sorted(kept)


def random_scores(seed: int, num_tokens: int, longest: int, levels: int) -> NDArray[np.float32]:
    """Scores of few levels, so that many are equal, for sentences of up to seven tokens."""
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, levels, (num_tokens, longest)).astype(np.float32)
    ends = np.sort(generator.choice(num_tokens + 1, num_tokens // 4, replace=False))
    ends = np.append(ends[ends > 0], num_tokens)
    left = ends[np.searchsorted(ends, np.arange(num_tokens), side="right")] - np.arange(num_tokens)
    scores[np.arange(longest) >= left[:, None]] = -np.inf
    return scores


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 9, 1000])
def test_keeps_what_the_paper_says(seed: int, count: int) -> None:
    scores = random_scores(seed, num_tokens=30, longest=6, levels=[3, 1000][seed % 2])
    kept = best_non_crossing_spans(scores, count)
    assert [(number // 6, number // 6 + number % 6) for number in kept.tolist()] == slow(scores, count)


def test_without_spans_nothing_is_kept() -> None:
    assert best_non_crossing_spans(np.full((3, 2), -np.inf, dtype=np.float32), 5).tolist() == []
