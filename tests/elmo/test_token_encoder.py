from __future__ import annotations

import torch

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.characters import tokens_to_ids


def test_more_tokens_than_a_block_and_none(bilm: BiLM) -> None:
    """What the numbers are, `test_against_numpy` says."""
    ids = tokens_to_ids([f"token{number}" for number in range(1100)])
    whole = bilm.token_encoder(ids)
    assert whole.shape == (1100, 6)
    torch.testing.assert_close(whole[700:720], bilm.token_encoder(ids[700:720]))
    assert bilm.token_encoder(ids[:0]).shape == (0, 6)
