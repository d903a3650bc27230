"""Two runs that find a name, for all tests of tables."""

from pathlib import Path
from typing import Any

import pytest

import elmo_tasks

LEARNED = [
    {"tokens": ["Orla", "sold", "it", "."], "tags": ["B-PER", "O", "O", "O"]},
    {"tokens": ["Nobody", "was", "hurt", "."], "tags": ["O"] * 4},
]


@pytest.fixture(scope="session")
def runs(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two that find Orla; not to be changed."""
    folders = [tmp_path_factory.mktemp("runs") / name for name in ("one", "two")]
    for seed, folder in enumerate(folders):
        changes: dict[str, Any] = {"trainer.moving_average": None, "trainer.trackers": [], "random_seed": seed}
        elmo_tasks.train(settings, folder, train=LEARNED * 60, overrides=changes)
    return folders
