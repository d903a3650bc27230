"""How much layer stores may hold, and how they are listed and cleared."""

import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

from elmo_tasks.elmo import layer_store
from elmo_tasks.elmo.cached_layers import LayerCacheConfig
from elmo_tasks.elmo.layer_key import TORCH_TYPES, LayerKey, Storage
from elmo_tasks.elmo.layer_store import LayerStore, clear, info, usage
from elmo_tasks.errors import CacheError
from tests.elmo.layer_store.fillers import (
    HALF_PRECISION_KEY,
    KEY,
    NUM_LAYERS,
    SENTENCES,
    FakeSource,
    Unwanted,
    assert_holds,
    database,
    fill,
)

NEED = 3 * (4 + 8 + 8) * 4 + 750  # of a sentence of three tokens: half of the token layer and two more, and its key


def fits(store: LayerStore) -> bool:
    """Whether there is room for a sentence of three tokens."""
    try:
        with store.filling([["a", "b", "c"]]):
            return True
    except CacheError:
        return False


def test_by_default_all_caches_may_have_20_gigabytes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = (
        LayerStore(KEY),
        LayerStore(KEY, max_gigabytes=20),
        LayerCacheConfig(storage="float32").build("0123abcd", "float32", 3, 8),
    )
    for used, has_room in ((20 * 10**9 - NEED, True), (20 * 10**9 - NEED + 1, False)):
        monkeypatch.setattr(layer_store, "usage", lambda used=used: (1, used))
        assert [fits(store) for store in stores] == [has_room] * 3


def test_what_the_disk_has_left_can_be_used_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(folder)
    for free in (NEED, NEED - 1):
        monkeypatch.setattr("shutil.disk_usage", lambda path, free=free: usage._replace(free=free))
        assert fits(LayerStore(KEY)) is (free == NEED)
    with pytest.raises(CacheError, match=rf"the disk of {folder}/layers has only 989 bytes left.*ELMO_TASKS_CACHE"):
        fill(LayerStore(KEY), SENTENCES, Unwanted())


@pytest.mark.parametrize("storage", ["float16", "float32"])
def test_the_bound_is_for_what_is_written(storage: Storage) -> None:
    key = LayerKey("0123abcd", "float32", NUM_LAYERS, 256, storage)
    sentences = [[f"{row}", *["and"] * (row % 30)] for row in range(300)]
    store = LayerStore(key, max_gigabytes=1e-9)
    with pytest.raises(CacheError, match=r"needs .* for 300 distinct sentences of 4,650 tokens") as caught:
        fill(store, sentences * 2, Unwanted())
    megabytes = float(str(caught.value).split()[4])
    with LayerStore(key).filling(sentences) as missing:
        store.write(missing, torch.randn(4650, key.features).to(TORCH_TYPES[storage]))
    assert 0.97 < sum(path.stat().st_size for path in store.folder.iterdir()) / 1e6 / megabytes < 1.03
    fill(store, sentences, Unwanted())  # a full store beyond its bound can be read


def test_a_full_disk_leaves_the_store_as_it_was(room: Callable[[int], AbstractContextManager[None]]) -> None:
    store, first, second = LayerStore(KEY), FakeSource(), FakeSource()
    fill(store, SENTENCES[:8])
    message = r"written: disk I/O error; needs 12\.1 kB for 10 .* tokens\. Free some space on its disk"
    with room(database(store).stat().st_size + 6000), pytest.raises(CacheError, match=message):  # half way
        fill(store, SENTENCES, first)
    assert_holds(store, SENTENCES[:8])
    fill(store, SENTENCES, second)
    assert first.computed[0] in second.computed or len(first.calls) > 1
    assert_holds(KEY)


def test_the_bound_counts_all_caches_and_says_what_to_do(full_store: LayerStore) -> None:
    store = LayerStore(HALF_PRECISION_KEY, max_gigabytes=4e-5)
    message = r"needs 36\.4 kB for 40 distinct .*limit of 40 kB.*now 4e-05.*elmo-tasks cache clear.*layer_cache: null"
    with pytest.raises(CacheError, match=message):
        fill(store, SENTENCES, Unwanted())
    assert not store.folder.exists()
    clear()
    fill(store)


def test_info_describes_each_cache(full_store: LayerStore) -> None:
    fill(LayerStore(HALF_PRECISION_KEY), SENTENCES[:2])
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


def test_a_description_that_cannot_be_read_is_named(full_store: LayerStore) -> None:
    (full_store.folder / "about.json").write_text("{}")
    with pytest.raises(CacheError, match=f"elmo-tasks cache clear {KEY.name}"):
        info()
    assert clear(KEY.name)[0] == 1
    assert info() == []


def test_clear_removes_one_or_all_or_nothing() -> None:
    assert (info(), clear()) == ([], (0, 0))
    for key in (KEY, HALF_PRECISION_KEY):
        fill(LayerStore(key))
    size = next(entry.bytes for entry in info() if entry.key == KEY)
    assert clear(KEY.name[:6]) == (1, size)
    assert [entry.key for entry in info()] == [HALF_PRECISION_KEY]
    rest = usage()
    assert clear() == rest == (1, rest[1])
    assert info() == []
    for key in (KEY, HALF_PRECISION_KEY):
        fill(LayerStore(key))
    assert clear() == (2, size + rest[1])


def test_clear_leaves_readers_undisturbed(full_store: LayerStore) -> None:
    clear()
    assert_holds(full_store)
    source = FakeSource()
    fill(full_store, SENTENCES, source)
    assert len(source.computed) == len(SENTENCES)
    assert_holds(KEY)


def test_folders_of_earlier_versions_are_listed_and_cleared(folder: Path) -> None:
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


def test_clear_names_what_there_is_and_refuses_what_is_being_filled(full_store: LayerStore) -> None:
    with pytest.raises(CacheError, match=f"begins with 'xyz'; there are: {KEY.name}"):
        clear("xyz")
    with LayerStore(KEY).filling([["new"]]), pytest.raises(CacheError, match="is filling this layer cache"):
        clear()
    assert len(info()) == 1
    fill(LayerStore(HALF_PRECISION_KEY))
    with pytest.raises(CacheError, match="more than one"):
        clear("")
