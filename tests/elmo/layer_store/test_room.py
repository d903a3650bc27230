"""How much layer stores may hold, and that they can be removed."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

from elmo_tasks.elmo import layer_store
from elmo_tasks.elmo.frozen_layers import LayerCacheConfig
from elmo_tasks.elmo.layer_store import TORCH_TYPES, LayerKey, LayerStore, Storage
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


def test_all_caches_have_the_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    config = LayerCacheConfig(storage="float32", max_gigabytes=20)
    for used, has_room in ((20 * 10**9 - NEED, True), (20 * 10**9 - NEED + 1, False)):
        monkeypatch.setattr(layer_store, "usage", lambda used=used: used)
        assert fits(config.build("0123abcd", "float32", 3, 8)) == has_room


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
    message = r"needs 36\.4 kB for 40 .*limit of 40 kB.*now 4e-05.*remove folders in .*layers, or .*layer_cache: null"
    with pytest.raises(CacheError, match=message):
        fill(store, SENTENCES, Unwanted())
    assert not store.folder.exists()
    shutil.rmtree(full_store.folder)
    fill(store)


def test_readers_of_a_store_that_is_removed_are_undisturbed(full_store: LayerStore) -> None:
    shutil.rmtree(full_store.folder)
    assert_holds(full_store)
    source = FakeSource()
    fill(full_store, SENTENCES, source)
    assert len(source.computed) == len(SENTENCES)
    assert_holds(KEY)
