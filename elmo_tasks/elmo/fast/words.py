"""Vectors of words: each distinct word is computed once, and kept as long as there is room.

The reference is `TokenEncoder`. `WordEncoder` is 2.5 times as fast for 1,278 words (the biLM in the package, float32,
one core), and a word that is kept costs nothing; `python -m benchmarks.bilm` measures whole batches.

# N tokens, U words, C character positions, E features of a character, F filters, P features of a word
"""

from __future__ import annotations

import copy
import functools
import itertools
import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo.characters import PADDING_ID, tokens_to_ids
from elmo_tasks.elmo.fast.products import Precision, Product, build_product
from elmo_tasks.elmo.fast.threads import run_together
from elmo_tasks.elmo.options import CharacterCnnOptions
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.text.tokens import batches_of_like_lengths

Word = str | bytes
"""A word as a string, or as the bytes of its character ids; see `ids_to_bytes`."""

_WINDOWS_AT_ONCE = 256  # of characters: 2 MB of the published models' filters, which fit into a processor's cache
_WORDS_AT_ONCE = 256


class WordEncoder:
    """The token encoder, for words of any lengths.

    A filter's value at a window is a sum over the window's characters, each at its position. There are few different
    characters, so the values of all filters for each character at each position are computed once. A window's values
    are then a sum of rows, one for each position of the widest filter, without a product. Words of like length are
    computed together, and windows of padding are read once. Numbers equal `TokenEncoder`'s up to rounding.

    Arguments:
        encoder: what to compute, whose weights are copied.
        options: its sizes.
        precision: of all products. Filters' sums have half precision, unless it is float32.
    """

    def __init__(self, encoder: TokenEncoder, options: CharacterCnnOptions, precision: Precision) -> None:
        self._convolutions = copy.deepcopy(encoder.convolutions)
        self._characters = encoder.embedding.weight.detach().clone()  # (characters, E)
        self._width = max(convolution.kernel_size[0] for convolution in encoder.convolutions)
        self._max_characters = options.max_characters_per_token
        build = functools.partial(build_product, precision=precision, few_rows=True)  # a sentence has few new words
        self._highways: list[Product] = []  # both products of a layer as one: the carry gate's, then the inputs'
        for layer in encoder.highways:
            both = (layer.carry, layer.transform)
            weights, biases = (torch.cat([getattr(each, name) for each in both]) for name in ("weight", "bias"))
            self._highways.append(build(weights, biases))
            del weights
        self._projection: Product | None = None
        if encoder.projection is not None:
            projection = copy.deepcopy(encoder.projection)  # which a product may use as it is
            self._projection = build(projection.weight, projection.bias)
        # After the products, which for a moment need much memory.
        found, self._bias = _filter_characters(encoder, self._width)
        # Where the rows of each position begin.
        self._offsets = len(self._characters) * torch.arange(self._width, device=found.device)
        self._found = found.to(torch.float32 if precision == "float32" else torch.float16)
        self._activation = torch.tanh if options.activation == "tanh" else torch.relu

    def __call__(self, words: Sequence[Word]) -> Tensor:
        """(U, P) float32"""
        ids = tokens_to_ids(words, self._max_characters)  # (U, C)
        lengths = (ids != PADDING_ID).sum(dim=1)
        order = lengths.argsort(stable=True)
        lengths = lengths[order]
        # Two threads get at least one block each, unless that is too small to be worth it.
        most = min(max(-(-len(words) // 2), 8), _WORDS_AT_ONCE) if torch.get_num_threads() > 1 else _WORDS_AT_ONCE
        parts = zip(ids[order].to(self._characters.device).split(most), lengths.split(most), strict=True)
        tasks = [functools.partial(self._encode, *part) for part in parts]
        vectors = torch.cat(run_together(tasks, self._characters.device))  # (U, P)
        return vectors[order.argsort().to(vectors.device)]

    def _encode(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """(U, C), (U,) rising -> (U, P)"""
        windows = (lengths + 1).tolist()
        blocks = batches_of_like_lengths(windows, range(len(ids)), max_padded=_WINDOWS_AT_ONCE)
        filters = [self._filters(ids[block[0] : block[-1] + 1], windows[block[-1]] - 1) for block in blocks]
        vectors = self._activation(torch.cat(filters))  # (U, F)
        for carry_and_transform in self._highways:
            carry, transformed = carry_and_transform(vectors).chunk(2, dim=1)
            # carry * relu(transformed) + (1 - carry) * vectors
            vectors = torch.lerp(vectors, transformed.relu_(), carry.sigmoid_())
        return vectors if self._projection is None else self._projection(vectors)  # (U, P)

    def _filters(self, ids: Tensor, longest: int) -> Tensor:
        """(U, C) ids, which are padding from `longest` on -> (U, F)"""
        # After words of full length there is no padding, and filters narrower than the widest have more windows.
        if longest + self._width > self._max_characters:
            characters = self._characters[ids].transpose(1, 2)  # (U, E, C)
            return torch.cat([convolution(characters).amax(dim=-1) for convolution in self._convolutions], dim=-1)
        windows = ids[:, : longest + self._width].unfold(1, self._width, 1)  # (U, longest + 1, width)
        windows = windows + self._offsets  # rows of `_found`
        if self._found.device.type == "mps":  # torch has no `embedding_bag` there before 2.10
            sums = self._found[windows].sum(dim=2)  # (U, longest + 1, F)
        else:
            sums = functional.embedding_bag(windows.flatten(0, 1), self._found, mode="sum")
        return sums.view(*windows.shape[:2], -1).amax(dim=1) + self._bias


class WordVectors:
    """Vectors of words by their spelling. They are kept until there is no room for another; then all are forgotten.

    Arguments:
        encode: computes the vectors of distinct words, (U, P).
        capacity: the number of words whose vectors are kept.
    """

    def __init__(self, encode: Callable[[Sequence[Word]], Tensor], capacity: int) -> None:
        self._encode = encode
        self._capacity = capacity
        self._rows: dict[Word, int] = {}
        self._table: Tensor | None = None  # (capacity, P)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        """Forgets all vectors, so that the next ones do not depend on which words were computed together before."""
        with self._lock:
            self._rows.clear()

    def look_up(self, tokens: Sequence[Word]) -> Tensor:
        """(N, P); vectors that are not kept are computed."""
        parts = [tokens[start : start + self._capacity] for start in range(0, len(tokens), self._capacity)]
        with self._lock, torch.no_grad():
            return torch.cat([self._look_up(part) for part in parts])

    def _look_up(self, tokens: Sequence[Word]) -> Tensor:
        """For at most as many tokens as vectors can be kept, so that all are in the table at once."""
        missing = [word for word in dict.fromkeys(tokens) if word not in self._rows]
        if len(self._rows) + len(missing) > self._capacity:
            self._rows.clear()
            missing = list(dict.fromkeys(tokens))
        if missing:
            vectors = self._encode(missing)
            if self._table is None:
                self._table = vectors.new_empty(self._capacity, vectors.shape[1])
            first = len(self._rows)
            self._table[first : first + len(missing)] = vectors
            self._rows.update(zip(missing, itertools.count(first)))
        assert self._table is not None
        return self._table[torch.tensor([self._rows[token] for token in tokens], device=self._table.device)]


def _filter_characters(encoder: TokenEncoder, width: int) -> tuple[Tensor, Tensor]:
    """The value of each filter for each character at each position of a window `width` characters wide; and the biases.

    Returns:
        (width * characters, F), all characters at the first position first, zeros where a filter is not so wide; (F,)
    """
    characters = encoder.embedding.weight.detach()  # (characters, E)
    biases = torch.cat([each.bias.detach() for each in encoder.convolutions if each.bias is not None])  # (F,)
    found = characters.new_zeros(width, len(characters), len(biases))
    sizes = [len(convolution.weight) for convolution in encoder.convolutions]
    for part, convolution in zip(found.split(sizes, dim=2), encoder.convolutions, strict=True):
        weight = convolution.weight.detach()
        part[: weight.shape[2]] = torch.einsum("ce,nek->kcn", characters, weight)
    return found.flatten(0, 1), biases
