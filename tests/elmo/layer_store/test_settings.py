"""The settings of the layer cache, and how much it may hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.elmo import layer_store
from elmo_tasks.elmo.cached_layers import LayerCacheConfig
from elmo_tasks.elmo.layer_store import LayerKey, LayerStore, Storage
from elmo_tasks.errors import CacheError
from tests.elmo.layer_store.fillers import KEY

NEED = 3 * (4 + 8 + 8) * 4 + 750  # of a sentence of three tokens: half of the token layer and two more, and its key


def fits(store: LayerStore) -> bool:
    """Whether there is room for a sentence of three tokens."""
    try:
        with store.filling([["a", "b", "c"]]):
            return True
    except CacheError:
        return False


@pytest.mark.parametrize(("storage", "has_token_layer"), [("float32", True), ("float16", False)])
def test_the_store_is_that_of_the_model_and_the_settings(storage: Storage, has_token_layer: bool) -> None:
    config = LayerCacheConfig(storage=storage, max_gigabytes=1.5)
    store = config.build("ab", "int8", 3, 8, has_token_layer=has_token_layer)
    assert (store.key, store.max_gigabytes) == (LayerKey("ab", "int8", 3, 8, storage, has_token_layer), 1.5)
    default = LayerCacheConfig().build("ab", "int8", 3, 8)
    assert default.key == LayerKey("ab", "int8", 3, 8, "float16", has_token_layer=True)


@pytest.mark.parametrize(
    "build",
    [
        lambda: LayerStore(KEY),
        lambda: LayerCacheConfig(storage="float32").build("0123abcd", "float32", 3, 8),
        lambda: LayerStore(KEY, max_gigabytes=20),
    ],
)
def test_by_default_all_caches_may_have_20_gigabytes_together(
    build: Callable[[], LayerStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    for used, has_room in ((20 * 10**9 - NEED, True), (20 * 10**9 - NEED + 1, False)):
        monkeypatch.setattr(layer_store, "usage", lambda used=used: (1, used))
        assert fits(build()) is has_room


def test_what_the_disk_has_left_can_be_used_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    for free in (NEED, NEED - 1):
        monkeypatch.setattr("shutil.disk_usage", lambda path, free=free: usage._replace(free=free))
        assert fits(LayerStore(KEY)) is (free == NEED)
