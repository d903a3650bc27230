"""The state from which a training resumes: the contents of `training.pt`, and the generators of random numbers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_tasks.errors import FORCE, RunError
from elmo_tasks.files.tensor_files import read_state

STATE_FILE = "training.pt"
VERSION = 2


def read_training_state(path: Path, num_processes: int) -> dict[str, Any]:
    """The state of a training by this number of processes.

    Raises:
        RunError: it is damaged, of another number of processes, or of an earlier version.
    """
    state = read_state(path)
    if state.get("version") != VERSION:
        raise RunError(
            f"{path}: saved by another version of elmo-tasks, from which this one cannot resume; finish the run "
            f"with the version that began it (see versions.json), or start again with {FORCE}"
        )
    if len(state["processes"]) != num_processes:
        number = len(state["processes"])
        raise RunError(f"{path}: saved by {number} processes, resumed by {num_processes}; expected the same number")
    return state


def seed_everything(seed: int) -> None:
    """Seeds the generators of Python, NumPy and torch (all devices)."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """The state of all generators, in plain containers and tensors."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": (kind, np.asarray(keys).tolist(), *rest),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Restores what `random_state` returned."""
    random.setstate(state["python"])
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, np.array(keys), *rest))
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"][: torch.cuda.device_count()])  # it may have been saved with more
