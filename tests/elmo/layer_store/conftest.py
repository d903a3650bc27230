"""An empty cache for each test, and a full store."""

from pathlib import Path

import pytest

from elmo_tasks.elmo import frozen_layers
from elmo_tasks.elmo.layer_store import LayerStore
from tests.elmo.layer_store.fillers import KEY, SENTENCES, SMALL_PART, FakeSource, fill


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store folder for each test, and small parts, so that there are some."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path))
    monkeypatch.setattr(frozen_layers, "_PART_BYTES", SMALL_PART)
    return tmp_path


@pytest.fixture
def full_store() -> LayerStore:
    store = LayerStore(KEY)
    fill(store, SENTENCES, FakeSource())
    return store
