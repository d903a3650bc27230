"""The biLM's token layer in training: all distinct words of a step at once, in both passes.

The reference is `TokenEncoder`. Forward and backward are 1.5 times as fast for 600 words (the biLM in the package,
float32, one core), and products can be in bfloat16; `python -m benchmarks.pretraining_step` measures whole steps.

All filters read the same windows of characters, as wide as the widest filter, so that a window is one product. The
maximum over a word's windows is updated with each window, except on GPUs: nothing of the size words x windows x filters
is held.
Words are sorted by length, so that few windows are in padding.

# U words, C character positions, E features of a character, F filters, P features of a word
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_tasks.elmo.characters import PADDING_ID, tokens_to_ids
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.text.tokens import TensorRecord

_ROWS = 64
_INTEGERS = {torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}


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
    counts = np.searchsorted(-num_windows, -np.arange(num_windows[0]))  # of words with a window at each position
    maxima = _maxima_of_groups if characters.is_cuda else _MaximumOverWindows.apply
    vectors = maxima(
        characters.to(dtype),
        _joined_filters(encoder, max(widths)).to(dtype),
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


class _MaximumOverWindows(torch.autograd.Function):
    """Each filter's maximum over the windows of each word.

    characters (U, C, E), filters (F, width E), bias (F,); of each position how many words are read there; and how many
    filters there are of each width, with the first position where they have no window -> (U, F)
    """

    @staticmethod
    def forward(
        ctx: Any, characters: Tensor, filters: Tensor, bias: Tensor, words_at: list[int], ends: list[tuple[int, int]]
    ) -> Tensor:
        width = filters.shape[1] // characters.shape[2]
        first_invalid = torch.cat([filters.new_full((size,), end) for size, end in ends])  # (F,)
        earliest = min(end for _, end in ends)
        best = filters.new_full((len(characters), len(filters)), -torch.inf)  # (U, F)
        best_at = torch.zeros_like(best, dtype=_INTEGERS[filters.dtype])
        for position, words in enumerate(words_at):
            windows = characters[:words, position : position + width].flatten(1)  # (words, width E)
            values = functional.linear(windows, filters, bias)  # (words, F)
            if position >= earliest:
                values.masked_fill_(first_invalid <= position, -torch.inf)
            highest = torch.maximum(best[:words], values)
            # The last position that was better than all before it.
            better = torch.ne(_bits(highest), _bits(best[:words]), out=torch.empty_like(best_at[:words]))
            torch.maximum(best_at[:words], better.mul_(position), out=best_at[:words])
            best[:words] = highest
        ctx.save_for_backward(characters, filters, best_at)
        ctx.words_at = words_at
        return best

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        characters, filters, best_at = ctx.saved_tensors
        of_characters = torch.zeros_like(characters)
        of_filters = torch.zeros_like(filters, dtype=torch.promote_types(filters.dtype, torch.float32))
        width = filters.shape[1] // characters.shape[2]
        for position, words in enumerate(ctx.words_at):
            here = torch.eq(best_at[:words], position, out=torch.empty_like(best_at[:words]))
            chosen = here.mul_(_bits(gradient[:words])).view(gradient.dtype)  # (words, F), elsewhere 0
            window = slice(position, position + width)
            of_filters += chosen.t() @ characters[:words, window].flatten(1)
            of_characters[:words, window] += (chosen @ filters).view(words, width, -1)
        return of_characters, of_filters.to(filters.dtype), gradient.sum(dim=0), None, None


def _maxima_of_groups(
    characters: Tensor, filters: Tensor, bias: Tensor, words_at: list[int], ends: list[tuple[int, int]]
) -> Tensor:
    """The same, with all windows of a group of words at once: a GPU has the memory, and few operations to start."""
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


def _bits(values: Tensor) -> Tensor:
    """The values as integers of their size, which torch compares several times as fast, and into integers."""
    return values.view(_INTEGERS[values.dtype])


def _rounded_up(number: int) -> int:
    """oneDNN compiles and keeps code for each number of rows: this leaves few of them."""
    return -(-number // _ROWS) * _ROWS


def _joined_filters(encoder: TokenEncoder, width: int) -> Tensor:
    """All filters as wide as the widest, (F, width E); narrow ones are padded with zeros."""
    padded = [
        functional.pad(convolution.weight, (0, width - convolution.kernel_size[0]))
        for convolution in encoder.convolutions
    ]
    return torch.cat(padded).transpose(1, 2).flatten(1)


def _linear(inputs: Tensor, linear: nn.Linear, dtype: torch.dtype) -> Tensor:
    product = functional.linear(inputs.to(dtype), linear.weight.to(dtype), linear.bias.to(dtype))
    return product.to(linear.weight.dtype)
