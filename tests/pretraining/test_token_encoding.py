"""The token layer in training against the plain one."""

from __future__ import annotations

import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.elmo.characters import tokens_to_ids
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.random_weights import random_bilm
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.pretraining.token_encoding import WordsByLength, encode_tokens

SHORT = ["a", "word", "words", "<S>", "</S>", "naïve", "", "."]
# 47 characters and the two borders leave one column of padding; 48 and more leave none.
LONG = [("abcdefghijklmnopqrstuvwxyz" * 3)[-length:] for length in (40, 41, 42, 43, 44, 45, 46, 47, 48, 60)]
LONG += ["x" * length for length in (43, 46, 60)]


def with_wide_filter_first(options: BiLMOptions) -> BiLMOptions:
    filters = ((5, 3), (1, 4), (2, 2))
    return options.model_copy(update={"char_cnn": options.char_cnn.model_copy(update={"filters": filters})})


@pytest.mark.parametrize(
    "options", [TINY_OPTIONS, with_wide_filter_first(TINY_OPTIONS)], ids=["rising", "mixed widths"]
)
@pytest.mark.parametrize(
    "words", [SHORT, LONG, SHORT + LONG, ["one"], 5 * SHORT + 8 * LONG], ids=["short", "long", "both", "one", "many"]
)
def test_vectors_and_gradients_equal_the_plain_encoders(options: BiLMOptions, words: list[str]) -> None:
    encoder: TokenEncoder = random_bilm(options, seed=4).requires_grad_(True).token_encoder.double()
    ids = tokens_to_ids(words)
    factors = torch.randn(len(words), options.lstm.projection_dim, dtype=torch.float64)
    parameters = list(encoder.parameters())

    expected = encoder(ids)
    expected_gradients = torch.autograd.grad((expected * factors).sum(), parameters)
    by_length, places = WordsByLength.of(words, 50)
    vectors = encode_tokens(encoder, by_length, torch.float64)[places]
    gradients = torch.autograd.grad((vectors * factors).sum(), parameters)

    torch.testing.assert_close(vectors, expected)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient)
