from __future__ import annotations

import pytest
import torch

from elmo_tasks.elmo import BiLM, BiLMOptions, random_bilm
from elmo_tasks.elmo.characters import tokens_to_ids

TOKENS = ["a", "bb", "ccc", "x" * 30, "y" * 60, "é", ""]


def _straight(bilm: BiLM, ids: torch.Tensor) -> torch.Tensor:
    """The token layer over all characters, padding and all, one convolution window at a time."""
    encoder = bilm.token_encoder
    characters = encoder.embedding.weight[ids]  # (N, C, E)
    maxima = []
    for convolution in encoder.convolutions:
        width = convolution.kernel_size[0]
        windows = [
            torch.einsum("nwe,few->nf", characters[:, start : start + width], convolution.weight) + convolution.bias
            for start in range(ids.shape[1] - width + 1)
        ]
        maxima.append(torch.stack(windows).amax(dim=0))
    vectors = torch.cat(maxima, dim=1)
    vectors = vectors.tanh() if bilm.options.char_cnn.activation == "tanh" else vectors.relu()
    for highway in encoder.highways:
        carry = highway.carry(vectors).sigmoid()
        vectors = carry * highway.transform(vectors).relu() + (1 - carry) * vectors
    return vectors if encoder.projection is None else encoder.projection(vectors)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("filters", [((1, 5), (3, 7)), ((2, 4), (1, 2))])
def test_equals_every_window_one_by_one(options: BiLMOptions, activation: str, filters: tuple) -> None:
    settings = options.char_cnn.model_copy(update={"activation": activation, "filters": filters})
    bilm = random_bilm(options.model_copy(update={"char_cnn": settings}), seed=1)
    assert (bilm.token_encoder.projection is None) == (sum(number for _, number in filters) == 6)
    ids = tokens_to_ids(TOKENS)
    torch.testing.assert_close(bilm.token_encoder(ids), _straight(bilm, ids))
    for row in ids:
        torch.testing.assert_close(bilm.token_encoder(row[None]), _straight(bilm, row[None]))


def test_more_tokens_than_a_block_and_none(bilm: BiLM) -> None:
    ids = tokens_to_ids([f"token{number}" for number in range(1100)])
    whole = bilm.token_encoder(ids)
    assert whole.shape == (1100, 6)
    torch.testing.assert_close(whole[700:720], bilm.token_encoder(ids[700:720]))
    assert bilm.token_encoder(ids[:0]).shape == (0, 6)


def test_each_distinct_token_is_encoded_once(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    encode = bilm.token_encoder.forward

    def counting(ids: torch.Tensor) -> torch.Tensor:
        counts.append(len(ids))
        return encode(ids)

    monkeypatch.setattr(bilm.token_encoder, "forward", counting)
    bilm.plain_layers([["a", "b", "a"], ["b", "b", "c"]])
    assert counts == [5]  # a, b, c and the two sentence borders
