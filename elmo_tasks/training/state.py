"""The state from which a training resumes: the contents of `training.pt`, and the generators of random numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import torch
from torch import Tensor

from elmo_tasks.errors import BEGIN_AGAIN, FORCE, RunError
from elmo_tasks.files.json_files import checked
from elmo_tasks.files.tensor_files import read_state
from elmo_tasks.training.callbacks import Progress

STATE_FILE = "training.pt"
VERSION = 2


class ProcessState(pydantic.BaseModel):
    """What only one process has."""

    generators: dict[str, Any]
    carried: Any


class TrainingState(pydantic.BaseModel):
    """The contents of the file, except for its version."""

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    progress: Progress
    parameters: list[Tensor]
    optimizer: dict[str, Any]
    schedule: dict[str, Any]
    average: dict[str, Any] | None
    processes: list[ProcessState]


def read_training_state(path: Path, num_processes: int) -> TrainingState:
    """The state of a training by this number of processes.

    Raises:
        RunError: it is damaged, of another number of processes, or of an earlier version.
    """
    content = read_state(path)
    if content.get("version") != VERSION:
        raise RunError(
            f"{path}: saved by another version of elmo-tasks, from which this one cannot resume; finish the run "
            f"with the version that began it (see versions.json), or start again with {FORCE}"
        )
    state = checked(content, TrainingState, path, f"a training state ({BEGIN_AGAIN})")
    if len(state.processes) != num_processes:
        raise RunError(
            f"{path}: saved by {len(state.processes)} processes, resumed by {num_processes}; expected the same number"
        )
    return state


def check_like(own: Mapping[str, Any], loaded: Mapping[str, Any]) -> None:
    """Raises `ValueError` if loaded settings lack a name of a part's own, or have no number for one of its numbers."""
    for name, value in own.items():
        if name not in loaded or (isinstance(value, (int, float)) and not isinstance(loaded[name], (int, float))):
            raise ValueError(f"{name} is {loaded.get(name, 'missing')!r}; expected a value such as {value!r}")


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
