"""What all tests share: one thread, a cache of their own, and the real data where it is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState

REPOSITORY = Path(__file__).resolve().parent.parent

torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def isolated_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Derived data goes to a temporary folder, so that no test sees what an earlier run left behind."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_TASKS_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def fresh_accelerator() -> Iterator[None]:
    """Accelerate keeps device and precision for the whole process; each test chooses its own."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real benchmark data: `ELMO_TASKS_DATA`, or `../shared/data` beside the repository."""
    chosen = os.environ.get("ELMO_TASKS_DATA")
    folder = Path(chosen) if chosen else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not a folder (set ELMO_TASKS_DATA)")
    return folder
