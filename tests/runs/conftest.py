"""A run that is finished, one that was killed, and copies of them that a test may change."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.training.trainer import Trainer
from tests.runs.small_runs import SmallRun, killed_at


@pytest.fixture(scope="session")
def trained(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    """A finished run; not to be changed."""
    run = SmallRun(tmp_path_factory.mktemp("trained") / "run", settings)
    run.train()
    return run


@pytest.fixture(scope="session")
def killed(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    """A run that was killed after its last epoch; not to be changed."""
    run = SmallRun(tmp_path_factory.mktemp("killed") / "run", settings)
    with killed_at(Trainer, "set_parameters"):
        run.train()
    return run


@pytest.fixture
def run(config_file: Path, tmp_path: Path) -> SmallRun:
    """A run that has not begun."""
    return SmallRun(tmp_path / "run", config_file)


@pytest.fixture
def finished(run: SmallRun, trained: SmallRun) -> SmallRun:
    shutil.copytree(trained.path, run.path)
    return run


@pytest.fixture
def stopped(run: SmallRun, killed: SmallRun) -> SmallRun:
    shutil.copytree(killed.path, run.path)
    return run
