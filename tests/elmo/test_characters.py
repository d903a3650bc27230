from __future__ import annotations

import pytest
import torch

from elmo_tasks.elmo import batch_to_ids
from elmo_tasks.elmo.characters import tokens_to_ids

BEGIN, END, PADDING = 259, 260, 261


@pytest.mark.parametrize(
    ("token", "kept"),
    [
        ("ab", b"ab"),
        ("é", b"\xc3\xa9"),
        ("x" * 47, b"x" * 47),
        ("x" * 48, b"x" * 48),
        ("x" * 60, b"x" * 48),
        ("語" * 30, ("語" * 30).encode()[:48]),
        ("a\ud800b", b"ab"),  # half a character
    ],
)
def test_a_token_is_its_first_bytes_plus_one_between_borders(token: str, kept: bytes) -> None:
    ids = tokens_to_ids([token])
    assert ids.dtype == torch.int64
    assert ids.tolist() == [[BEGIN, *(byte + 1 for byte in kept), END, *[PADDING] * (48 - len(kept))]]
    assert tokens_to_ids([token], max_characters=5).tolist() == [
        [BEGIN, *(byte + 1 for byte in kept[:3]), END, *[PADDING] * (3 - len(kept))]
    ]


def test_sentence_borders_have_characters_of_their_own() -> None:
    ids = tokens_to_ids(["<S>", "</S>"])
    assert ids[:, :3].tolist() == [[BEGIN, 257, END], [BEGIN, 258, END]]
    assert (ids[:, 3:] == PADDING).all()


def test_batches_are_padded_with_zeros() -> None:
    ids = batch_to_ids([["one"], [], ["three", "tokens", "here"]])
    assert ids.shape == (3, 3, 50)
    assert (ids > 0).any(dim=-1).sum(dim=1).tolist() == [1, 0, 3]
    assert torch.equal(ids[2], tokens_to_ids(["three", "tokens", "here"]))
    assert batch_to_ids([]).shape == (0, 0, 50)
    assert tokens_to_ids([]).shape == (0, 50)
