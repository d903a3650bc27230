"""The layer store gives the right vectors, also in part, and each sentence is computed once."""

import dataclasses
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.frozen_layers import LayerCacheConfig
from elmo_tasks.elmo.layer_store import LayerStore, Storage, sentence_key
from elmo_tasks.errors import CacheError
from tests.elmo.layer_store.fillers import (
    CPU,
    HALF,
    HALF_PRECISION_KEY,
    KEY,
    NUM_LAYERS,
    SENTENCES,
    SMALL_PART,
    FakeSource,
    Provider,
    Unwanted,
    assert_holds,
    assert_same,
    fill,
    query,
    read,
)

TOKENS = sum(map(len, SENTENCES))


def test_the_key_of_a_sentence_depends_on_its_tokens_and_on_nothing_else() -> None:
    sentences = [[], [""], ["", ""], ["ab"], ["a", "b"], ["a b"], ["ab", ""], ["", "ab"], ["\0"], ["\0", "\0"]]
    sentences += [["b", "a"], ["é"], ["e\u0301"], ["\ud83d\ude00"], ["\U0001f600"], ["1", "a"], ["1a"]]
    assert len({sentence_key(tokens) for tokens in sentences}) == len(sentences)
    assert sentence_key(["a", "b"]) == sentence_key(("a", "b"))


def test_weights_precision_and_form_have_folders_of_their_own() -> None:
    changes: list[dict[str, Any]] = [{"fingerprint": "4567"}, {"precision": "int8"}, {"num_layers": 2}]
    changes += [{"output_size": 10}, {"storage": "float16"}, {"has_token_layer": False}]
    names = {KEY.name, *(dataclasses.replace(KEY, **change).name for change in changes)}
    assert len(names) == 1 + len(changes)


def test_the_stores_of_earlier_versions_are_found_and_read() -> None:
    assert KEY.name == "c31b2c51a79d6ed9006383d9784a3055"
    store, sentence = LayerStore(KEY), ["an", "\u00e9"]
    with store.filling([sentence]):
        store.write([sentence], torch.ones(2, KEY.features))
    assert query(store, "SELECT hex(key), tokens, checksum, length(layers) FROM sentences") == [
        ("FECD7847A5C742572481BA0844D6F45A", 2, 3897626880577195230, 160)
    ]


def test_float32_gives_the_vectors_of_the_source_bit_for_bit(full_store: LayerStore) -> None:
    read(full_store, SENTENCES).layers.fill_(7.0)  # a reader may change its vectors
    for store in (full_store, LayerStore(KEY)):
        for sentences in (SENTENCES, SENTENCES[::-1], SENTENCES[3:4], [SENTENCES[5]] * 3):
            assert_holds(store, sentences)
        fill(store, SENTENCES, Unwanted())


def test_float16_gives_the_vectors_of_the_source_rounded() -> None:
    store = LayerStore(HALF_PRECISION_KEY)
    fill(store)
    expected = FakeSource().layers(SENTENCES)
    assert_same(read(store, SENTENCES), LayerOutput(expected.layers.half().float(), expected.mask))


def test_empty_sentences_and_empty_batches_need_no_computation() -> None:
    store = LayerStore(KEY)
    fill(store, [[], []], Unwanted())
    fill(store, [], Unwanted())
    assert read(store, [[], []]).layers.shape == (2, NUM_LAYERS, 0, 2 * HALF)
    assert read(store, []).layers.shape == (0, NUM_LAYERS, 0, 2 * HALF)
    fill(store, [[], ["a", "b"], []])
    assert_holds(store, [[], ["a", "b"], []])


def test_each_distinct_sentence_is_computed_and_stored_once_and_its_token_layer_too() -> None:
    store, source = LayerStore(KEY), FakeSource()
    fill(store, SENTENCES[:20] * 2, source)
    fill(store, SENTENCES, source)
    assert sorted(source.computed) == sorted(SENTENCES)
    size, count = query(store, "SELECT sum(length(layers)), count(*) FROM sentences")[0]
    assert size == TOKENS * 4 * (HALF + 2 * HALF * (NUM_LAYERS - 1)) == TOKENS * KEY.token_bytes
    assert count == len(SENTENCES)


def test_the_source_gets_sentences_of_like_length_in_bounded_parts_with_progress() -> None:
    source, seen = FakeSource(), list[tuple[int, int]]()
    fill(LayerStore(KEY), SENTENCES, source, lambda done, total: seen.append((done, total)))
    assert len(source.calls) > 3
    lengths = [len(tokens) for tokens in source.computed]
    assert lengths == sorted(lengths, reverse=True)
    assert all(len(call) * len(call[0]) * KEY.token_bytes <= SMALL_PART for call in source.calls)
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1] == (TOKENS, TOKENS)


def test_reading_what_is_not_there_names_it(full_store: LayerStore) -> None:
    sentences = [SENTENCES[0], ["not", "there"], []]
    output, missing = full_store.read(sentences)
    assert missing == [1]
    assert not output.layers[1].any()
    assert torch.equal(output.mask, FakeSource().layers(sentences).mask)
    assert_holds(full_store, SENTENCES[:1])


def test_what_another_process_stores_is_seen() -> None:
    reader, writer = LayerStore(KEY), LayerStore(KEY)
    assert reader.read(SENTENCES)[1] == list(range(len(SENTENCES)))
    fill(writer)
    assert_holds(reader)


def test_a_copy_opens_the_store_anew(full_store: LayerStore) -> None:
    pickled = pickle.dumps(full_store)
    assert len(pickled) < 1000
    assert_holds(pickle.loads(pickled))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_opens_the_store_anew(full_store: LayerStore) -> None:
    assert_holds(full_store)
    with multiprocessing.get_context("fork").Pool(2) as workers:
        children = [workers.apply_async(_connections_after_reading, (full_store,)) for _ in range(4)]
        processes = {process for child in children for process in child.get(timeout=60)}
    assert os.getpid() not in processes
    assert_holds(full_store)


def _connections_after_reading(store: LayerStore) -> list[int]:
    """The processes to which the connections belong of a store that was read in this one."""
    assert_holds(store)
    return [process for process, _ in store._connections]


def test_threads_read_at_once(full_store: LayerStore) -> None:
    with ThreadPoolExecutor(4) as threads:
        for reading in [threads.submit(assert_holds, full_store) for _ in range(80)]:
            reading.result()


def test_a_value_beyond_float16_is_refused_and_float32_holds_any() -> None:
    store, wide = LayerStore(HALF_PRECISION_KEY), LayerStore(KEY)
    with pytest.raises(CacheError, match=r"beyond float16's 65504; store them as float32"):
        fill(store, SENTENCES, FakeSource(scale=1e6))
    assert not store.folder.exists()
    fill(wide, SENTENCES, FakeSource(scale=1e30))
    assert_holds(wide, scale=1e30)


def test_with_a_full_store_no_source_is_built(full_store: LayerStore) -> None:
    def never() -> Unwanted:
        raise AssertionError("built without need")

    provider = Provider(never, full_store)
    provider.fill(SENTENCES, CPU)
    assert_same(provider.layers(SENTENCES, CPU), FakeSource().layers(SENTENCES))


def test_a_stored_sentence_may_be_longer_than_all_missing_ones(full_store: LayerStore) -> None:
    batch = [["new"], SENTENCES[4], ["not", "stored"], SENTENCES[0], []]
    assert len(SENTENCES[4]) > 2
    assert_same(Provider(FakeSource, full_store).layers(batch, CPU), FakeSource().layers(batch))


@pytest.mark.parametrize(("storage", "tolerance"), [("float32", 1e-6), ("float16", 2e-3)])
def test_a_bilm_gives_the_same_with_and_without(bilm: BiLM, storage: Storage, tolerance: float) -> None:
    config = LayerCacheConfig(storage=storage)
    store = config.build(bilm.fingerprint(), "float32", bilm.num_layers, bilm.output_size)
    provider = Provider(lambda: bilm, store)
    provider.fill(SENTENCES[::2], CPU)
    output, expected = provider.layers(SENTENCES, CPU), bilm.layers(SENTENCES)
    assert len(store.missing(SENTENCES)) == len(SENTENCES) // 2
    torch.testing.assert_close(output.layers, expected.layers, atol=tolerance, rtol=0)
    assert torch.equal(output.mask, expected.mask)
