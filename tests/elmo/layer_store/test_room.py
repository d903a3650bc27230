"""How much layer stores may hold, and how they are listed and cleared."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import resource
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
import torch

from elmo_tasks.elmo import layer_store
from elmo_tasks.elmo.cached_layers import CachedLayers
from elmo_tasks.elmo.layer_store import LayerKey, LayerStore, Storage, clear, info, usage
from elmo_tasks.errors import CacheError
from elmo_tasks.files.cache import human_size
from tests.elmo.layer_store.fillers import (
    HALF_PRECISION_KEY,
    KEY,
    NUM_LAYERS,
    SENTENCES,
    FakeSource,
    Unwanted,
    assert_same,
    database,
    fill,
    read,
)


class TestRoom:
    @pytest.mark.parametrize("storage", ["float16", "float32"])
    def test_the_bound_is_for_what_is_written(self, storage: Storage) -> None:
        key = LayerKey("0123abcd", "float32", NUM_LAYERS, 256, storage)
        sentences = [[f"{row}", *["and"] * (row % 30)] for row in range(300)]
        store = LayerStore(key, max_gigabytes=1e-9)
        with pytest.raises(CacheError, match=r"needs .* for 300 distinct sentences of 4,650 tokens") as caught:
            fill(store, sentences * 2, Unwanted())
        megabytes = float(str(caught.value).split()[4])
        with LayerStore(key).filling(sentences) as missing:
            store.write(missing, torch.randn(4650, key.features).to(layer_store.TORCH_TYPES[storage]))
        assert 0.97 < sum(path.stat().st_size for path in store.folder.iterdir()) / 1e6 / megabytes < 1.03
        fill(store, sentences, Unwanted())

    def test_filling_tells_how_much_it_will_be(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        store = LayerStore(KEY)
        fill(store, SENTENCES, FakeSource())
        assert f"{store.key.token_bytes * 160 + 40 * 750:,}" == "42,800"
        assert f"42.8 kB for 40 distinct sentences of 160 tokens to compute, kept in {store.folder}" in caplog.text

    def test_a_full_disk_leaves_the_store_as_it_was(self) -> None:
        store, first, second = LayerStore(KEY), FakeSource(), FakeSource()
        fill(store, SENTENCES[:8], FakeSource())
        # A file that may not grow fails as on a full disk: in the middle of writing.
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (database(store).stat().st_size + 6000, unlimited[1]))
        try:
            with pytest.raises(
                CacheError,
                match=r"written: disk I/O error; needs 12\.1 kB for 10 .* tokens\. Make room on its disk",
            ):
                fill(store, SENTENCES, first)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        assert_same(read(store, SENTENCES[:8]), FakeSource().layers(SENTENCES[:8]))
        fill(store, SENTENCES, second)
        assert first.computed[0] in second.computed or len(first.calls) > 1
        assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))

    def test_the_bound_counts_all_caches_and_says_what_to_do(self, full_store: LayerStore, folder: Path) -> None:
        store = LayerStore(HALF_PRECISION_KEY, max_gigabytes=4e-5)
        with pytest.raises(CacheError) as caught:
            fill(store, SENTENCES, Unwanted())
        message = str(caught.value)
        assert "needs 36.4 kB for 40 distinct sentences of 160 tokens" in message
        assert "its bound of 40 kB" in message
        for advice in ("max_gigabytes (now 4e-05)", "elmo-tasks cache clear", "layer_cache: null"):
            assert advice in message
        assert not store.folder.exists()
        clear()
        fill(store, SENTENCES, FakeSource())

    def test_a_full_store_beyond_its_bound_can_be_read(self, full_store: LayerStore) -> None:
        store = LayerStore(KEY, max_gigabytes=1e-9)
        fill(store, SENTENCES, Unwanted())
        assert_same(read(store, SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_disk_without_room_is_named(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = shutil.disk_usage(folder)
        monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=1500))
        with pytest.raises(CacheError, match=rf"the disk of {folder} has only 1\.5 kB left.*ELMO_TASKS_CACHE"):
            fill(LayerStore(KEY), SENTENCES, Unwanted())

    @pytest.mark.parametrize(
        ("size", "text"),
        [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (999_999, "1000 kB"), (1_041_234_567, "1.04 GB")],
    )
    def test_sizes_are_readable(self, size: int, text: str) -> None:
        assert human_size(size) == text


class TestInfoAndClear:
    def test_nothing_is_there_at_first(self) -> None:
        assert info() == []
        assert clear() == (0, 0)

    def test_info_tells_of_each_cache(self, full_store: LayerStore) -> None:
        fill(LayerStore(HALF_PRECISION_KEY), SENTENCES[:2], FakeSource())
        os.utime(full_store.folder / "about.json", (1e9, 1e9))
        half, full = info()
        assert (half.key, half.sentences, half.tokens) == (HALF_PRECISION_KEY, 2, sum(map(len, SENTENCES[:2])))
        assert (full.key, full.sentences, full.tokens) == (KEY, len(SENTENCES), sum(map(len, SENTENCES)))
        assert full.name == KEY.name
        assert full.bytes == sum(path.stat().st_size for path in full_store.folder.iterdir())
        assert full.last_used.isoformat() == "2001-09-09T01:46:40+00:00"
        before = time.time() - 60
        LayerStore(KEY)
        assert next(entry for entry in info() if entry.key == KEY).last_used.timestamp() > before

    def test_a_description_that_cannot_be_read_is_named(self, full_store: LayerStore) -> None:
        (full_store.folder / "about.json").write_text("{}")
        with pytest.raises(CacheError, match=f"elmo-tasks cache clear {KEY.name}"):
            info()
        assert clear(KEY.name)[0] == 1
        assert info() == []

    def test_clear_removes_one_or_all(self, full_store: LayerStore) -> None:
        fill(LayerStore(HALF_PRECISION_KEY), SENTENCES, FakeSource())
        size = next(entry.bytes for entry in info() if entry.key == KEY)
        assert clear(KEY.name[:6]) == (1, size)
        assert [entry.key for entry in info()] == [HALF_PRECISION_KEY]
        rest = usage()
        assert clear() == rest == (1, rest[1])
        assert info() == []
        for key in (KEY, HALF_PRECISION_KEY):
            fill(LayerStore(key), SENTENCES, FakeSource())
        assert clear() == (2, size + rest[1])

    def test_clear_leaves_readers_undisturbed(self, full_store: LayerStore) -> None:
        clear()
        assert_same(read(full_store, SENTENCES), FakeSource().layers(SENTENCES))
        source = FakeSource()
        fill(full_store, SENTENCES, source)
        assert len(source.computed) == len(SENTENCES)
        assert_same(read(LayerStore(KEY), SENTENCES), FakeSource().layers(SENTENCES))

    def test_a_reader_of_a_cleared_store_leaves_the_next_one_alone(self, full_store: LayerStore) -> None:
        expected = FakeSource().layers(SENTENCES)
        assert_same(read(full_store, SENTENCES), expected)
        clear()
        fill(LayerStore(KEY), SENTENCES[:20], FakeSource())
        with contextlib.closing(sqlite3.connect(database(full_store), isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("DELETE FROM sentences")
            # The reader comes upon the journal of a file that is not the one it has open.
            assert (full_store.folder / "layers.sqlite-journal").exists()
            assert_same(CachedLayers(FakeSource, full_store).layers(SENTENCES), expected)
            assert (full_store.folder / "layers.sqlite-journal").exists()
            writer.execute("ROLLBACK")
        assert_same(read(LayerStore(KEY), SENTENCES[:20]), FakeSource().layers(SENTENCES[:20]))

    def test_folders_of_earlier_versions_are_listed_and_cleared(self, folder: Path) -> None:
        old = folder / "layers" / "0a1b"
        old.mkdir(parents=True)
        (old / "about.json").write_text(json.dumps(dataclasses.asdict(KEY)))
        (old / "fill.lock").touch()
        (old / "00ff.segment").write_bytes(b"0" * 1000)
        entry = info()[0]
        assert (entry.name, entry.key, entry.sentences, entry.tokens) == ("0a1b", KEY, 0, 0)
        assert clear("0a") == (1, entry.bytes)
        assert entry.bytes > 1000
        assert not old.exists()

    def test_clear_names_what_there_is(self, full_store: LayerStore) -> None:
        with pytest.raises(CacheError, match=f"begins with 'xyz'; there are: {KEY.name}"):
            clear("xyz")
        fill(LayerStore(HALF_PRECISION_KEY), SENTENCES, FakeSource())
        with pytest.raises(CacheError, match="more than one"):
            clear("")

    def test_clear_refuses_what_is_being_filled(self, full_store: LayerStore) -> None:
        with LayerStore(KEY).filling([["new"]]), pytest.raises(CacheError, match="a run is filling this layer cache"):
            clear()
        assert len(info()) == 1
