from __future__ import annotations

import torch

from elmo_tasks.modules.reversal import reversal


def test_sentences_are_read_from_their_ends_and_padding_stays() -> None:
    order = reversal(torch.tensor([3, 1, 4]), 5)  # (T, B)
    assert order.t().tolist() == [[2, 1, 0, 3, 4], [0, 1, 2, 3, 4], [3, 2, 1, 0, 4]]


def test_twice_is_once_forward() -> None:
    order = reversal(torch.tensor([6, 2, 5, 1]), 7)
    values = torch.randn(7, 4)
    assert torch.equal(values.gather(0, order).gather(0, order), values)
