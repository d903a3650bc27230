"""Which spans are kept as possible mentions.

# T tokens of a document, W tokens of the longest span
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def best_non_crossing_spans(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The best spans of which no two cross, that is, overlap without one being inside the other.

    Source: Lee et al. (2017), section 5: spans are looked at in the order of their scores, the best first, and a span
    is kept unless it crosses one that was kept before, until there are enough. Of spans with equal scores, the one that
    starts first comes first, then the shorter one. Takes time in proportion to T x W, and for the sorting.

    Arguments:
        scores: (T, W), at [t, w] that of the span of w + 1 tokens that starts at token t; minus infinity where there is
            no such span.
        count: most spans that are kept.

    Returns:
        the numbers t * W + w of the spans that are kept, in ascending order: by first, then by last token.
    """
    num_tokens, longest = scores.shape
    flat = scores.ravel()
    order = np.argsort(-flat, kind="stable")[: np.count_nonzero(flat != -np.inf)]
    furthest_end = [-1] * num_tokens  # of the kept spans that start at a token
    earliest_start = [num_tokens] * num_tokens  # of the kept spans that end at a token
    kept: list[int] = []
    for number in order.tolist():
        if len(kept) == count:
            break
        start, width = divmod(number, longest)
        end = start + width
        # A span of one token crosses none. Most of the spans that are kept have one.
        if width and (max(furthest_end[start + 1 : end + 1]) > end or min(earliest_start[start:end]) < start):
            continue
        furthest_end[start] = max(furthest_end[start], end)
        earliest_start[end] = min(earliest_start[end], start)
        kept.append(number)
    return np.sort(np.array(kept, dtype=np.int64))
