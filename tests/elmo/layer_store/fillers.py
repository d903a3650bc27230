"""Fake sources of layers, and what tests of stores do again and again."""

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.frozen_layers import LayerProvider, LayerSource
from elmo_tasks.elmo.layer_store import LayerKey, LayerStore

HALF, NUM_LAYERS = 4, 3
CPU = torch.device("cpu")
KEY = LayerKey("0123abcd", "float32", NUM_LAYERS, 2 * HALF, "float32")
HALF_PRECISION_KEY = LayerKey("0123abcd", "float32", NUM_LAYERS, 2 * HALF, "float16")
SENTENCES = [[f"word{number % 7}", *["and"] * (number % 5), f"so{number}"] for number in range(40)]
SMALL_PART = 6 * 10 * KEY.token_bytes


class FakeSource:
    """Layers drawn at random for each sentence; remembers what it is given.

    Arguments:
        before_call: called with the number of each call.
        scale: of the numbers.
    """

    def __init__(self, before_call: Callable[[int], None] = lambda call: None, scale: float = 1.0) -> None:
        self.calls: list[list[list[str]]] = []
        self.before_call = before_call
        self.scale = scale

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        self.before_call(len(self.calls))
        self.calls.append([list(tokens) for tokens in sentences])
        longest = max(map(len, sentences), default=0)
        layers = torch.zeros(len(sentences), NUM_LAYERS, longest, 2 * HALF)
        for row, tokens in enumerate(sentences):
            seed = int.from_bytes(hashlib.sha256("|".join(tokens).encode()).digest()[:7], "big")
            drawn = torch.randn(NUM_LAYERS, len(tokens), 2 * HALF, generator=torch.Generator().manual_seed(seed))
            drawn[0, :, HALF:] = drawn[0, :, :HALF]
            layers[row, :, : len(tokens)] = drawn * self.scale
        lengths = torch.tensor([len(tokens) for tokens in sentences], dtype=torch.int64)
        return LayerOutput(layers, torch.arange(longest)[None, :] < lengths[:, None])

    @property
    def computed(self) -> list[list[str]]:
        return [tokens for call in self.calls for tokens in call]


class Unwanted:
    """A source that nobody may ask."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        raise AssertionError(f"computed {sentences} though it is stored")


class Provider(LayerProvider):
    """Gives layers from a store, and from a source that is made for the first missing sentence."""

    def __init__(self, make: Callable[[], LayerSource], store: LayerStore | None = None) -> None:
        self.make = make
        self.opened = store

    def load(self, device: torch.device) -> LayerSource:
        return self.make()

    def open_store(self) -> LayerStore | None:
        return self.opened


def fill(
    store: LayerStore,
    sentences: Sequence[Sequence[str]] = SENTENCES,
    source: LayerSource | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> None:
    Provider(lambda: source or FakeSource(), store).fill(sentences, CPU, progress)


def read(store: LayerStore, sentences: Sequence[Sequence[str]]) -> LayerOutput:
    """The layers of sentences that are all there."""
    output, missing = store.read(sentences)
    assert not missing
    return output


def assert_holds(
    store: LayerStore | LayerKey, sentences: Sequence[Sequence[str]] = SENTENCES, scale: float = 1.0
) -> None:
    """A store, or the one of a key when it is opened again, holds sentences with the vectors of `FakeSource`."""
    opened = LayerStore(store) if isinstance(store, LayerKey) else store
    assert_same(read(opened, sentences), FakeSource(scale=scale).layers(sentences))


def database(store: LayerStore) -> Path:
    return store.folder / "layers.sqlite"


def query(store: LayerStore, statement: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(database(store))) as connection:
        return connection.execute(statement).fetchall()


def assert_same(output: LayerOutput, expected: LayerOutput) -> None:
    assert output.layers.dtype == torch.float32
    assert torch.equal(output.layers, expected.layers)
    assert torch.equal(output.mask, expected.mask)
