"""Reading padded sentences from their ends.

# B batch, T tokens
"""

from __future__ import annotations

import torch
from torch import Tensor


def reversal(lengths: Tensor, num_tokens: int) -> Tensor:
    """(T, B) int64: the place of the token that comes at each time when each sentence is read from its end.

    The padding stays in its place. Applying the order twice restores the original one.

    Arguments:
        lengths: (B,) int64, in tokens.
        num_tokens: T.
    """
    time = torch.arange(num_tokens, device=lengths.device).unsqueeze(1)  # (T, 1)
    return torch.where(time < lengths, lengths - 1 - time, time)
