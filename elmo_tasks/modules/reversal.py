"""Reading padded sentences from their ends.

# B batch, T tokens
"""

from __future__ import annotations

import torch
from torch import Tensor


def reversal(lengths: Tensor, num_tokens: int) -> Tensor:
    """(T, B) int64: where in its sentence a reader from the end is at each time; the padding stays in its place.

    Whoever takes values in this order twice has them as they were.

    Arguments:
        lengths: (B,) int64, in tokens.
        num_tokens: T.
    """
    time = torch.arange(num_tokens, device=lengths.device).unsqueeze(1)  # (T, 1)
    return torch.where(time < lengths, lengths - 1 - time, time)
