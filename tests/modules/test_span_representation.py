"""Vectors and scores of spans against the paper's equations, span by span."""

from __future__ import annotations

import pytest
import torch

from elmo_tasks.modules import coreference
from elmo_tasks.modules.coreference import SpanRepresentation
from elmo_tasks.modules.sentence_groups import TokenVectors

LENGTHS = (5, 1, 3)  # of the sentences
TOKENS_LEFT = torch.tensor([left for length in LENGTHS for left in range(length, 0, -1)])
WIDTH = 4


@pytest.fixture
def spans() -> SpanRepresentation:
    torch.manual_seed(5)
    return SpanRepresentation(3, 4, WIDTH, feature_size=2, hidden_sizes=(6, 5), dropout=0.3).eval()


@pytest.fixture
def tokens() -> TokenVectors:
    return TokenVectors(inputs=torch.randn(9, 3), encoded=torch.randn(9, 4))


def vector(spans: SpanRepresentation, tokens: TokenVectors, start: int, end: int) -> torch.Tensor:
    """g = [x*_start; x*_end; sum_t a_t x_t; phi], a the softmax of w · FFNN(x*_t) over the span."""
    scorer = spans.attention
    logits = [scorer.output(scorer.rest(torch.relu(scorer.first(tokens.encoded[t])))) for t in range(start, end + 1)]
    weights = torch.cat(logits).softmax(0)
    head = (weights.unsqueeze(1) * tokens.inputs[start : end + 1]).sum(0)
    return torch.cat([tokens.encoded[start], tokens.encoded[end], head, spans.width_embedding[end - start]])


def all_spans() -> list[tuple[int, int]]:
    return [(token, token + width) for token in range(9) for width in range(min(WIDTH, int(TOKENS_LEFT[token])))]


def test_vectors(spans: SpanRepresentation, tokens: TokenVectors) -> None:
    chosen = all_spans()
    starts, ends = torch.tensor(chosen).unbind(1)
    found = spans.vectors(spans.features(tokens), starts, ends)
    expected = torch.stack([vector(spans, tokens, start, end) for start, end in chosen])
    assert found.shape == (len(chosen), spans.output_size)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("chunk", [1, 4, 2048])
def test_mention_scores(
    spans: SpanRepresentation, tokens: TokenVectors, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coreference, "_CHUNK_TOKENS", chunk)
    scorer = spans.mention_scorer
    expected = torch.full((9, WIDTH), float("-inf"))
    for start, end in all_spans():
        hidden = torch.relu(scorer.first(vector(spans, tokens, start, end)))
        expected[start, end - start] = scorer.output(scorer.rest(hidden))
    torch.testing.assert_close(spans.mention_scores(spans.features(tokens), TOKENS_LEFT), expected)


def test_extreme_attention_is_finite(spans: SpanRepresentation, tokens: TokenVectors) -> None:
    with torch.no_grad():
        spans.attention.output.weight.mul_(1e4)
    scores = spans.mention_scores(spans.features(tokens), TOKENS_LEFT)
    scores[scores > float("-inf")].sum().backward()
    assert all(p.grad.isfinite().all() for p in spans.parameters() if p.grad is not None)
