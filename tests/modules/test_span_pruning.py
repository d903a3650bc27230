from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from elmo_tasks.modules.coreference import best_non_crossing_spans


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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 9, 1000])
def test_keeps_what_the_paper_says(seed: int, count: int) -> None:
    scores = random_scores(seed, num_tokens=30, longest=6, levels=[3, 1000][seed % 2])
    kept = best_non_crossing_spans(scores, count)
    assert [(number // 6, number // 6 + number % 6) for number in kept.tolist()] == slow(scores, count)


def test_nested_and_neighbouring_spans_do_not_cross() -> None:
    scores = np.full((4, 4), -np.inf, dtype=np.float32)
    scores[0, 3], scores[1, 1], scores[1, 0], scores[3, 0] = 4, 3, 2, 1
    scores[2, 1] = 0.5  # crosses [1, 2]
    assert best_non_crossing_spans(scores, 9).tolist() == [3, 4, 5, 12]


def test_without_spans_nothing_is_kept() -> None:
    assert best_non_crossing_spans(np.full((3, 2), -np.inf, dtype=np.float32), 5).tolist() == []
