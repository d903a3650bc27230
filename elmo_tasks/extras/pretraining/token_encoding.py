"""The biLM's token layer in training: all distinct words of a step at once.

The reference is `TokenEncoder`. Here the sizes of all operations follow from the lengths of the words, for which a GPU
need not be waited for, and products can be in bfloat16; `python -m benchmarks.pretraining_step` measures whole steps.

All filters read the same windows of characters, as wide as the widest filter, so that a window is one product. Words
are sorted by length, so that few windows are in padding.

# U words, C character positions, E features of a character, F filters, P features of a word
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.characters import PADDING_ID, tokens_to_ids
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.text.tokens import TensorRecord

_ROWS = 64


@dataclasses.dataclass(frozen=True)
class WordsByLength(TensorRecord):
    """Distinct words, the longest first. A device that computes need not be waited for to know their lengths."""

    character_ids: Tensor  # (U, C) int64, as from `tokens_to_ids`
    lengths: np.ndarray  # (U,) character positions that are not padding

    @classmethod
    def of(cls, words: Sequence[str], max_characters: int) -> tuple[WordsByLength, np.ndarray]:
        """The words in their new order, and (U,) the new place of each."""
        character_ids = tokens_to_ids(words, max_characters)
        lengths, order = (character_ids != PADDING_ID).sum(dim=1).sort(descending=True, stable=True)
        return cls(character_ids[order], lengths.numpy()), order.argsort().numpy()


def encode_tokens(encoder: TokenEncoder, words: WordsByLength, dtype: torch.dtype) -> Tensor:
    """The vectors of words, as `TokenEncoder` computes them.

    Arguments:
        dtype: of the products' factors, torch.bfloat16 or that of the weights.

    Returns:
        (U, P) in the weights' type.
    """
    num_words, max_characters = words.character_ids.shape
    filled = _rounded_up(num_words) - num_words
    character_ids = functional.pad(words.character_ids, (0, 0, 0, filled), value=PADDING_ID)
    widths = [convolution.kernel_size[0] for convolution in encoder.convolutions]
    sizes = [convolution.out_channels for convolution in encoder.convolutions]
    # The first window that is wholly in padding is read; those behind it are the same.
    num_windows = np.minimum(np.append(words.lengths, [0] * filled) + 1, max_characters - min(widths) + 1)
    positions = int(num_windows[0]) + max(widths) - 1
    characters = encoder.embedding(character_ids[:, :positions])  # (U, C', E)
    # Behind a token's last position there are only windows of narrow filters: what the wide ones read is not used.
    characters = functional.pad(characters, (0, 0, 0, positions - characters.shape[1]))
    first_invalid = [max_characters - width + 1 for width in widths]
    # All filters are as wide as the widest; narrow ones are padded with zeros.
    filters = [
        functional.pad(each.weight, (0, max(widths) - width))
        for each, width in zip(encoder.convolutions, widths, strict=True)
    ]
    counts = np.searchsorted(-num_windows, -np.arange(num_windows[0]))  # of words with a window at each position
    vectors = _maxima_over_windows(
        characters.to(dtype),
        torch.cat(filters).transpose(1, 2).flatten(1).to(dtype),
        torch.cat([convolution.bias for convolution in encoder.convolutions if convolution.bias is not None]).to(dtype),
        # Words without a window at a position may be read there all the same: what they read is padding again.
        [_rounded_up(count) for count in counts.tolist()],
        list(zip(sizes, first_invalid, strict=True)),
    ).to(encoder.embedding.weight.dtype)
    vectors = encoder.activation(vectors)  # (U, F)
    for highway in encoder.highways:
        carry = torch.sigmoid(_linear(vectors, highway.carry, dtype))
        vectors = torch.lerp(vectors, functional.relu(_linear(vectors, highway.transform, dtype)), carry)
    if encoder.projection is not None:
        vectors = _linear(vectors, encoder.projection, dtype)  # (U, P)
    return vectors[:num_words]


def _maxima_over_windows(
    characters: Tensor, filters: Tensor, bias: Tensor, words_at: list[int], ends: list[tuple[int, int]]
) -> Tensor:
    """Each filter's maximum over the windows of each word, with all windows of a group of words at once.

    Characters (U, C, E), filters (F, width E) and their bias (F,) -> (U, F). `words_at` says how many words are read at
    each position, and `ends` how many filters there are of each width, with the first position without their windows.
    """
    width = filters.shape[1] // characters.shape[2]
    first_invalid = torch.cat([filters.new_full((size,), end) for size, end in ends])  # (F,)
    earliest = min(end for _, end in ends)
    maxima: list[Tensor] = []
    start = 0
    while start < len(characters):
        positions = sum(words > start for words in words_at)
        end = words_at[2 * positions // 3]  # behind the words with more than two thirds of the first one's windows
        windows = characters[start:end, : positions + width - 1].unfold(1, width, 1)  # (u, positions, E, width)
        values = functional.linear(windows.transpose(2, 3).flatten(2), filters, bias)  # (u, positions, F)
        if positions > earliest:
            places = torch.arange(positions, device=values.device)[:, None]
            values = values.masked_fill(first_invalid <= places, -torch.inf)
        maxima.append(values.max(dim=1).values)
        start = end
    return torch.cat(maxima)


def _rounded_up(number: int) -> int:
    """oneDNN compiles and keeps code for each number of rows: this leaves few of them."""
    return -(-number // _ROWS) * _ROWS


def _linear(inputs: Tensor, linear: nn.Linear, dtype: torch.dtype) -> Tensor:
    product = functional.linear(inputs.to(dtype), linear.weight.to(dtype), linear.bias.to(dtype))
    return product.to(linear.weight.dtype)
