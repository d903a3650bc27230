"""What a run is said to take, compared with what it takes."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.elmo import layer_store
from elmo_tasks.extras.studies import estimate as estimating
from elmo_tasks.extras.studies.estimate import estimate
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.train import train
from elmo_tasks.training import trainer
from tests.runs.small_runs import SmallRun


@pytest.mark.parametrize("tokens", [200, 8_000])
def test_the_time_is_that_of_the_run(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: int
) -> None:
    """A clock that advances by a second whenever it is read counts the steps, which are all of the same length."""
    for module in (estimating, trainer):
        seconds = itertools.count()
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda seconds=seconds: float(next(seconds))))
    monkeypatch.setattr(estimating, "_TOKENS", tokens)
    given = ["data_loader.batch_size=1", "trainer.num_epochs=4"]
    found, *_ = estimate(load_config(settings, ExperimentConfig, given, {}))
    run = SmallRun(tmp_path / "run", settings)
    train(settings, run.path, overrides=given)
    took = sum(record["seconds"] for record in run.records())
    assert took >= 4
    assert found == pytest.approx(took, rel=1 / 3)


def test_the_bytes_are_those_of_the_cache_after_the_run(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(estimating, "_LAYER_BYTES", 5_000)
    monkeypatch.setattr(estimating, "_TOKENS", 60)
    config = load_config(settings, ExperimentConfig)
    _, seconds, size = estimate(config)
    assert 0 < layer_store.usage() < size / 2  # a part of them is kept
    train(settings, tmp_path / "run")
    assert layer_store.usage() == pytest.approx(size, rel=1 / 3)
    assert seconds > 0
    assert estimate(config)[1:] == (0.0, 0)
