"""What trackers get: which curves, how many points, the run's name; and what is said of one that fails."""

import errno
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from accelerate import Accelerator

from elmo_tasks.errors import WriteError
from elmo_tasks.extras.trackers.trackers import Trackers, flatten
from elmo_tasks.training.callbacks import Progress


def trackers(folder: Path, **more: Any) -> Trackers:
    """With an accelerator that has only what is given."""
    return Trackers(cast(Accelerator, SimpleNamespace(**{"logging_dir": None, **more})), folder)


def test_what_never_changes_is_not_a_curve() -> None:
    logged: list[Mapping[str, float]] = []
    noting = trackers(Path("run"), log=lambda values, step: logged.append(values))
    record: dict[str, Any] = {"epoch": 1, "step": 7, "validation": {"f1": 0.0, "support/PER": 3}}
    record |= {"learning_rate": [0.1, 0.1], "elmo": {"input": {"layers": [0, 1], "weights": [0.4, 0.6]}}}
    noting.on_epoch(Progress(), record)
    curves = {"validation/f1", "elmo/input/weights/0", "elmo/input/weights/1", "learning_rate/0"}
    assert set(logged[0]) == curves
    noting.on_epoch(Progress(), {**record, "learning_rate": [0.1, 0.2]})
    assert set(logged[1]) == {*curves, "learning_rate/1"}


def test_a_curve_has_a_point_every_fifty_steps() -> None:
    points: list[tuple[int, Mapping[str, float]]] = []
    noting = trackers(Path("run"), log=lambda values, step: points.append((step, values)))
    for step in range(1, 120):
        noting.on_step(Progress(step=step, seconds=step / 4), 0.5)
    assert points == [(step, {"step/loss": 0.5, "step/steps_per_second": 4.0}) for step in (50, 100)]


def test_trackers_of_other_makers_get_the_name_of_the_runs_folder(tmp_path: Path) -> None:
    begun: list[tuple[str, Mapping[str, Any]]] = []
    noting = {"log_with": ["wandb"], "init_trackers": lambda name, init_kwargs: begun.append((name, init_kwargs))}
    for progress in (Progress(), Progress(step=7)):
        trackers(tmp_path / "x" / ".." / "my-run", **noting).on_start(progress)
    settings = {"tensorboard": {"purge_step": None}, "wandb": {"name": "my-run"}, "mlflow": {"run_name": "my-run"}}
    resumed = settings | {"tensorboard": {"purge_step": 8}}
    assert begun == [("elmo-tasks", settings), ("elmo-tasks", resumed)]
    trackers(tmp_path, log_with=[]).on_start(Progress())  # nothing begins


def test_flatten_names_the_numbers() -> None:
    record = {"step": 3, "best": True, "validation": {"f1": 1.5, "name": "x"}, "learning_rate": [0.1, 0.2]}
    assert flatten(record) == {"step": 3, "validation/f1": 1.5, "learning_rate/0": 0.1, "learning_rate/1": 0.2}


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (FULL, WriteError, r"^run/tensorboard: cannot be written: No space"),
        (ConnectionError("the server is away"), ConnectionError, "the server is away"),
    ],
)
def test_a_tracker_that_finds_no_room_is_named(
    error: OSError, kind: type[Exception], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    full = Mock(side_effect=error)
    made = [SimpleNamespace(finish=full)]
    stopping = trackers(Path("run"), logging_dir=Path("run/tensorboard"), trackers=made, log=full)
    with pytest.raises(kind, match=message):
        stopping.on_epoch(Progress(), {"loss": 1.0})
    stopping.on_end()  # it must not hide the error that ends the training
    assert "run/tensorboard: the last points of the curves are not written" in caplog.text
    assert made == []
