"""Layers from a store, or computed where it lacks them."""

from __future__ import annotations

import pytest
import torch

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.cached_layers import CachedLayers, LayerCacheConfig
from elmo_tasks.elmo.layer_key import Storage
from elmo_tasks.elmo.layer_store import LayerStore
from tests.elmo.layer_store.fillers import HALF, NUM_LAYERS, SENTENCES, FakeSource, Unwanted, assert_same


def test_with_a_full_store_no_source_is_built(full_store: LayerStore) -> None:
    def never() -> Unwanted:
        raise AssertionError("built without need")

    cached = CachedLayers(never, full_store)
    cached.fill(SENTENCES)
    assert_same(cached.layers(SENTENCES), FakeSource().layers(SENTENCES))
    assert (cached.num_layers, cached.output_size) == (NUM_LAYERS, 2 * HALF)


def test_missing_sentences_are_computed_and_not_stored(full_store: LayerStore) -> None:
    built: list[FakeSource] = []

    def build() -> FakeSource:
        built.append(FakeSource())
        return built[-1]

    cached = CachedLayers(build, full_store)
    new = [[f"new{number}"] * number for number in range(12)]
    mixed = [tokens for pair in zip(SENTENCES, new, strict=False) for tokens in pair]
    for sentences in (mixed, new):
        assert_same(cached.layers(sentences), FakeSource().layers(sentences))
    assert len(built) == 1
    assert sorted(built[0].computed) == sorted(new[1:] * 2)
    assert len(full_store.missing(new)) == len(new) - 1


def test_a_stored_sentence_may_be_longer_than_all_missing_ones(full_store: LayerStore) -> None:
    batch = [["new"], SENTENCES[4], ["not", "stored"], SENTENCES[0], []]
    assert len(SENTENCES[4]) > 2
    assert_same(CachedLayers(FakeSource, full_store).layers(batch), FakeSource().layers(batch))


@pytest.mark.parametrize(("storage", "tolerance"), [("float32", 1e-6), ("float16", 2e-3)])
def test_a_bilm_gives_the_same_with_and_without(bilm: BiLM, storage: Storage, tolerance: float) -> None:
    config = LayerCacheConfig(storage=storage)
    store = config.build(bilm.fingerprint(), "float32", bilm.num_layers, bilm.output_size)
    cached = CachedLayers(lambda: bilm, store)
    cached.fill(SENTENCES[::2])
    output, expected = cached.layers(SENTENCES), bilm.layers(SENTENCES)
    assert len(store.missing(SENTENCES)) == len(SENTENCES) // 2
    torch.testing.assert_close(output.layers, expected.layers, atol=tolerance, rtol=0)
    assert torch.equal(output.mask, expected.mask)
