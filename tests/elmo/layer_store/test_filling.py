"""The layer store gives the right vectors, and each sentence is computed once."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable

import pytest
import torch

from elmo_tasks.elmo.layer_store import LayerStore, info, sentence_key
from elmo_tasks.elmo.layers import LayerOutput
from elmo_tasks.errors import CacheError
from tests.elmo.layer_store.fillers import (
    HALF,
    HALF_PRECISION_KEY,
    KEY,
    NUM_LAYERS,
    SENTENCES,
    SMALL_PART,
    Answer,
    FakeSource,
    Unwanted,
    assert_same,
    fill,
    query,
    read,
)


class TestKeys:
    def test_different_tokens_have_different_keys(self) -> None:
        sentences = [
            [],
            [""],
            ["", ""],
            ["ab"],
            ["a", "b"],
            ["a b"],
            ["ab", ""],
            ["", "ab"],
            ["\0"],
            ["\0", "\0"],
            ["b", "a"],
        ]
        sentences += [["é"], ["e\u0301"], ["\ud83d\ude00"], ["\U0001f600"], ["1", "a"], ["1a"]]
        assert len({sentence_key(tokens) for tokens in sentences}) == len(sentences)

    def test_a_key_depends_on_nothing_but_the_tokens(self) -> None:
        assert sentence_key(["a", "b"]) == sentence_key(("a", "b"))

    def test_weights_precision_and_form_have_folders_of_their_own(self) -> None:
        keys = [
            KEY,
            dataclasses.replace(KEY, fingerprint="4567"),
            dataclasses.replace(KEY, precision="int8"),
            dataclasses.replace(KEY, num_layers=2),
            dataclasses.replace(KEY, output_size=10),
            dataclasses.replace(KEY, storage="float16"),
            dataclasses.replace(KEY, has_token_layer=False),
        ]
        assert len({key.name for key in keys}) == len(keys)

    def test_the_stores_of_earlier_versions_are_found(self) -> None:
        assert KEY.name == "c31b2c51a79d6ed9006383d9784a3055"


class TestFillAndRead:
    def test_float32_gives_the_sources_vectors_bit_for_bit(self, full_store: LayerStore) -> None:
        for sentences in (SENTENCES, SENTENCES[::-1], SENTENCES[3:4], [SENTENCES[5]] * 3):
            assert_same(read(full_store, sentences), FakeSource().layers(sentences))

    def test_float16_gives_the_sources_vectors_rounded(self) -> None:
        store = LayerStore(HALF_PRECISION_KEY)
        fill(store, SENTENCES, FakeSource())
        expected = FakeSource().layers(SENTENCES)
        assert_same(read(store, SENTENCES), LayerOutput(expected.layers.half().float(), expected.mask))

    def test_a_new_process_finds_everything(self, full_store: LayerStore) -> None:
        again = LayerStore(KEY)
        fill(again, SENTENCES, Unwanted())
        assert_same(read(again, SENTENCES), FakeSource().layers(SENTENCES))

    def test_empty_sentences_and_empty_batches_need_no_computation(self) -> None:
        store = LayerStore(KEY)
        fill(store, [[], []], Unwanted())
        fill(store, [], Unwanted())
        assert read(store, [[], []]).layers.shape == (2, NUM_LAYERS, 0, 2 * HALF)
        assert read(store, []).layers.shape == (0, NUM_LAYERS, 0, 2 * HALF)
        fill(store, [[], ["a", "b"], []], FakeSource())
        assert_same(read(store, [[], ["a", "b"], []]), FakeSource().layers([[], ["a", "b"], []]))

    def test_each_distinct_sentence_is_computed_and_stored_once(self) -> None:
        store, source = LayerStore(KEY), FakeSource()
        fill(store, SENTENCES[:20] * 2, source)
        fill(store, SENTENCES, source)
        assert sorted(source.computed) == sorted(SENTENCES)
        assert info()[0].sentences == len(SENTENCES)

    def test_the_token_layer_is_stored_once(self, full_store: LayerStore) -> None:
        tokens = sum(map(len, SENTENCES))
        size, count = query(full_store, "SELECT sum(length(layers)), count(*) FROM sentences")[0]
        assert size == tokens * 4 * (HALF + 2 * HALF * (NUM_LAYERS - 1)) == tokens * KEY.token_bytes
        assert count == len(SENTENCES)

    def test_the_source_gets_sentences_of_like_length_in_bounded_parts(self) -> None:
        source = FakeSource()
        fill(LayerStore(KEY), SENTENCES, source)
        assert len(source.calls) > 3
        lengths = [len(tokens) for tokens in source.computed]
        assert lengths == sorted(lengths, reverse=True)
        assert all(len(call) * len(call[0]) * KEY.token_bytes <= SMALL_PART for call in source.calls)

    def test_a_sentence_larger_than_a_part_is_a_part(self) -> None:
        store = LayerStore(KEY)
        long = [str(number) for number in range(500)]
        fill(store, [["a"], long], FakeSource())
        assert_same(read(store, [long]), FakeSource().layers([long]))

    def test_progress_ends_at_the_total(self) -> None:
        told: list[tuple[int, int]] = []
        fill(LayerStore(KEY), SENTENCES, FakeSource(), lambda done, total: told.append((done, total)))
        tokens = sum(map(len, SENTENCES))
        assert len(told) > 3
        assert told == sorted(told)
        assert told[-1] == (tokens, tokens)

    def test_reading_what_is_not_there_names_it(self, full_store: LayerStore) -> None:
        sentences = [SENTENCES[0], ["not", "there"], []]
        output, missing = full_store.read(sentences)
        assert missing == [1]
        assert not output.layers[1].any()
        assert torch.equal(output.mask, FakeSource().layers(sentences).mask)
        assert_same(read(full_store, SENTENCES[:1]), FakeSource().layers(SENTENCES[:1]))

    def test_what_another_process_stores_is_seen(self) -> None:
        reader, writer = LayerStore(KEY), LayerStore(KEY)
        assert reader.read(SENTENCES)[1] == list(range(len(SENTENCES)))
        fill(writer, SENTENCES, FakeSource())
        assert_same(read(reader, SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_copy_opens_the_store_anew(self, full_store: LayerStore) -> None:
        pickled = pickle.dumps(full_store)
        assert len(pickled) < 1000
        assert_same(read(pickle.loads(pickled), SENTENCES), FakeSource().layers(SENTENCES))

    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
    def test_a_forked_process_opens_the_store_anew(self, full_store: LayerStore) -> None:
        assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))
        with multiprocessing.get_context("fork").Pool(2) as workers:
            children = [workers.apply_async(_connections_after_reading, (full_store,)) for _ in range(4)]
            processes = {process for child in children for process in child.get(timeout=60)}
        assert os.getpid() not in processes
        assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))

    def test_threads_read_at_once(self, full_store: LayerStore) -> None:
        problems: list[Exception] = []

        def read_often() -> None:
            try:
                for _ in range(20):
                    assert_same(read(full_store, SENTENCES), expected)
            except Exception as error:
                problems.append(error)

        expected = FakeSource().layers(SENTENCES)
        threads = [threading.Thread(target=read_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems

    def test_what_a_reader_does_to_its_vectors_stays_with_it(self, full_store: LayerStore) -> None:
        read(full_store, SENTENCES).layers.fill_(7.0)
        assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))
        assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))


class TestWrongSources:
    def test_a_value_beyond_float16_is_refused(self) -> None:
        store = LayerStore(HALF_PRECISION_KEY)
        with pytest.raises(CacheError, match=r"beyond float16's 65504; store them as float32"):
            fill(store, SENTENCES, FakeSource(scale=1e6))
        assert not store.folder.exists()

    def test_float32_holds_any_value(self) -> None:
        store = LayerStore(KEY)
        fill(store, SENTENCES, FakeSource(scale=1e30))
        assert_same(read(store, SENTENCES), FakeSource(scale=1e30).layers(SENTENCES))

    @pytest.mark.parametrize(
        ("spoil", "problem"),
        [
            (lambda output: LayerOutput(output.layers + torch.randn(2 * HALF), output.mask), "halves"),
            (
                lambda output: LayerOutput(output.layers[:, :2], output.mask),
                r"shape \(1, 2, 2, 8\); expected \(1, 3, 2, 8\)",
            ),
            (lambda output: LayerOutput(output.layers, ~output.mask), "mask"),
        ],
    )
    def test_what_cannot_be_right_is_not_stored(
        self, spoil: Callable[[LayerOutput], LayerOutput], problem: str
    ) -> None:
        store = LayerStore(KEY)
        with pytest.raises(ValueError, match=problem):
            fill(store, [["a", "b"]], Answer(spoil(FakeSource().layers([["a", "b"]]))))
        assert not store.folder.exists()


def _connections_after_reading(store: LayerStore) -> list[int]:
    """The processes to which the connections belong of a store that was read in this one."""
    assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))
    return [process for process, _ in store._connections]
