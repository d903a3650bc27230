"""The search is compared with all sequences, and with the digits that AllenNLP's sums keep."""

from __future__ import annotations

import itertools

import pytest
import torch

from elmo_tasks.modules.allennlp_search import Ties, allennlp_best_tags
from elmo_tasks.modules.crf import TransitionConstraints

TAGS = ("O", "B-A", "I-A", "B-V")
CONSTRAINTS = TransitionConstraints.of_scheme(TAGS, "IOB2")


@pytest.mark.parametrize("ties", ["first", "topk"])
def test_the_best_of_all_allowed_sequences(ties: Ties) -> None:
    torch.manual_seed(0)
    scores = torch.randint(0, 1000, (20, 4, 4)).float()  # far more than the digits that are lost
    lengths = torch.arange(20) % 4 + 1
    mask = torch.arange(4) < lengths.unsqueeze(1)
    found = allennlp_best_tags(scores, mask, CONSTRAINTS, ties)
    for row, length in enumerate(lengths.tolist()):
        sums = {}
        for tags in itertools.product(range(4), repeat=length):
            steps = zip((0, *tags), tags, strict=False)
            if all(tag != 2 or before in (1, 2) for before, tag in steps):
                sums[tags] = float(scores[row, range(length), list(tags)].sum())
        best = max(sums.values())
        assert sums[tuple(found[row, :length].tolist())] == best
        assert found[row, length:].tolist() == [0] * (4 - length)


def test_sums_keep_two_digits_after_the_point() -> None:
    """A multiple of 1/128 is added to 100,000 in single precision: a smaller difference is none, and the first wins."""
    mask = torch.ones(1, 1, dtype=torch.bool)
    scores = torch.tensor([[[0.5, 0.503, 0.0, 0.0]]])
    assert allennlp_best_tags(scores, mask, CONSTRAINTS, "first").tolist() == [[0]]
    assert allennlp_best_tags(scores + torch.tensor([0.0, 0.01, 0, 0]), mask, CONSTRAINTS, "first").tolist() == [[1]]
