"""Tokens as character ids: UTF-8 bytes between border characters, as bilm-tf and AllenNLP number them.

# B batch, T tokens of the longest sentence, C characters per token (50), N tokens
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.errors import ArgumentError, check_several

BEGIN_SENTENCE = "<S>"
END_SENTENCE = "</S>"
MAX_CHARACTERS = 50
NUM_CHARACTERS = 262

# A byte b has the id b + 1, since 0 is the mask: a token of zeros is padding.
_BEGIN_SENTENCE_ID = 257
_END_SENTENCE_ID = 258
_BEGIN_WORD_ID = 259
_END_WORD_ID = 260
_LONGEST_CACHED = 100  # characters; longer tokens would fill the cache
PADDING_ID = 261  # fills a token up to its width; for the convolutions it is a character like any other


def batch_to_ids(batch: Sequence[Sequence[str]], max_characters: int = MAX_CHARACTERS) -> Tensor:
    """Character ids of tokenized sentences, without sentence borders, which the biLM adds itself.

    Source: `allennlp.modules.elmo.batch_to_ids`, bilm-tf's `Batcher`. A token's bytes beyond `max_characters` - 2 are
    cut off. The tokens `<S>` and `</S>` are the sentence borders.

    Arguments:
        batch: the sentences' tokens.
        max_characters: the width C of a token; the published models have 50.

    Returns:
        (B, T, C) int64; tokens that pad a sentence are all 0.

    Raises:
        TypeError: a sentence is a string, or a token is not.
    """
    check_sentences(batch)
    longest = max(map(len, batch), default=0)
    ids = torch.zeros(len(batch), longest, max_characters, dtype=torch.int64)  # (B, T, C)
    for row, tokens in enumerate(batch):
        if tokens:
            ids[row, : len(tokens)] = tokens_to_ids(tokens, max_characters)
    return ids


def check_sentences(sentences: Sequence[Sequence[str]]) -> None:
    """Checks that each sentence is a list of tokens.

    Raises:
        ArgumentError: a sentence is not a list, such as a string, or a token is not a string.
    """
    expected = "a list of tokens, such as ['The', 'dog']; elmo_tasks.tokenize splits text"
    check_several("sentences", sentences, "a list of tokens for each sentence, such as [['The', 'dog'], ['Hello']]")
    for number, tokens in enumerate(sentences):
        check_several(f"sentence {number}", tokens, expected)
        for token in tokens:
            if not isinstance(token, str):
                raise ArgumentError(f"sentence {number} has the token {token!r}; expected strings")


def tokens_to_ids(tokens: Sequence[str | bytes], max_characters: int = MAX_CHARACTERS) -> Tensor:
    """Character ids (N, C) int64 of N tokens, each a string or what `ids_to_bytes` gives; see `batch_to_ids`."""
    if not tokens:
        return torch.zeros(0, max_characters, dtype=torch.int64)
    rows = b"".join([each if isinstance(each, bytes) else _ids_of_token(each, max_characters) for each in tokens])
    ids = np.frombuffer(rows, dtype=np.int16).reshape(len(tokens), max_characters)
    return torch.from_numpy(ids.astype(np.int64))  # (N, C)


def ids_to_bytes(ids: Tensor) -> list[bytes]:
    """Character ids (N, C) as N keys, which are equal for equal tokens. `tokens_to_ids` reads them."""
    content = ids.cpu().numpy().astype(np.int16).tobytes()
    size = ids.shape[1] * np.dtype(np.int16).itemsize
    return [content[start : start + size] for start in range(0, len(content), size)]


def _ids_of_token(token: str, max_characters: int) -> bytes:
    if len(token) <= _LONGEST_CACHED:
        return _token_to_ids(token, max_characters)
    return _token_to_ids.__wrapped__(token, max_characters)


@functools.lru_cache(maxsize=50_000)  # 20 MB
def _token_to_ids(token: str, max_characters: int) -> bytes:
    """One token's ids as the bytes of C int16, which are small and are joined to one array without a loop."""
    ids = np.full(max_characters, PADDING_ID, dtype=np.int16)
    if token == BEGIN_SENTENCE:
        content = np.array([_BEGIN_SENTENCE_ID], dtype=np.int16)
    elif token == END_SENTENCE:
        content = np.array([_END_SENTENCE_ID], dtype=np.int16)
    else:
        encoded = token.encode("utf-8", "ignore")[: max_characters - 2]
        content = np.frombuffer(encoded, dtype=np.uint8).astype(np.int16) + 1
    ids[0] = _BEGIN_WORD_ID
    ids[1 : len(content) + 1] = content
    ids[len(content) + 1] = _END_WORD_ID
    return ids.tobytes()
