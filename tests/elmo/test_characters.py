from __future__ import annotations

import torch

from elmo_tasks.elmo import batch_to_ids
from elmo_tasks.elmo.characters import tokens_to_ids

BEGIN, END, PADDING = 259, 260, 261


def test_a_token_is_its_bytes_plus_one_between_borders() -> None:
    ids = tokens_to_ids(["ab", "é"])
    assert ids.shape == (2, 50)
    assert ids.dtype == torch.int64
    assert ids[0].tolist() == [BEGIN, ord("a") + 1, ord("b") + 1, END] + [PADDING] * 46
    assert ids[1].tolist() == [BEGIN, 0xC3 + 1, 0xA9 + 1, END] + [PADDING] * 46


def test_sentence_borders_have_characters_of_their_own() -> None:
    ids = tokens_to_ids(["<S>", "</S>"])
    assert ids[:, :3].tolist() == [[BEGIN, 257, END], [BEGIN, 258, END]]
    assert (ids[:, 3:] == PADDING).all()


def test_long_tokens_are_cut_to_their_first_bytes() -> None:
    ids = tokens_to_ids(["x" * 60, "x" * 48, "x" * 47])
    assert ids[0].tolist() == [BEGIN] + [ord("x") + 1] * 48 + [END]
    assert torch.equal(ids[0], ids[1])
    assert ids[2, -1] == PADDING
    assert tokens_to_ids(["語" * 30])[0].tolist() == [BEGIN, *(byte + 1 for byte in ("語" * 30).encode()[:48]), END]


def test_widths_other_than_fifty() -> None:
    assert tokens_to_ids(["abcdef"], max_characters=5).tolist() == [[BEGIN, 98, 99, 100, END]]


def test_half_characters_are_left_out() -> None:
    assert torch.equal(tokens_to_ids(["a\ud800b"]), tokens_to_ids(["ab"]))


def test_batches_are_padded_with_zeros() -> None:
    ids = batch_to_ids([["one"], [], ["three", "tokens", "here"]])
    assert ids.shape == (3, 3, 50)
    assert (ids > 0).any(dim=-1).sum(dim=1).tolist() == [1, 0, 3]
    assert torch.equal(ids[2], tokens_to_ids(["three", "tokens", "here"]))
    assert batch_to_ids([]).shape == (0, 0, 50)
    assert tokens_to_ids([]).shape == (0, 50)
