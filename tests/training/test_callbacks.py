import json
import math
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer.event_file_writer import AtomicCounter

from elmo_tasks.errors import ConfigError
from elmo_tasks.runs.train import train
from elmo_tasks.training import processes
from elmo_tasks.training.callbacks import Callback, Progress, ProgressBar


class Noting(Callback):
    """Notes what it is called with, and stops the training before a step."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.steps: list[int] = []
        self.losses: list[float] = []
        self.records: list[Mapping[str, Any]] = []
        self.seconds = 0.0
        self.ends = 0
        self._stop_at = stop_at

    def on_step(self, progress: Progress, loss: float) -> None:
        self.steps.append(progress.step)
        self.losses.append(loss)
        if progress.step == self._stop_at:
            raise KeyboardInterrupt

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        self.records.append(record)
        self.seconds = progress.seconds

    def on_end(self) -> None:
        self.ends += 1


def curve(folder: Path, name: str) -> list[int]:
    """The steps of a curve in TensorBoard."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return [point.step for point in events.Scalars(name)]


@pytest.mark.parametrize(
    ("values", "losses", "best", "without_progress"),
    [
        ((-3, -3, -4, 0, 0, math.nan, 0.5), (1,) * 7, [1, 4, 7], [0, 1, 2, 0, 1, 2, 0]),  # equal losses: the first wins
        ((66.7, 66.7, 66.7, 66.7), (1.08, 0.7, 0.9, 0.48), [1, 2, 4], [0, 1, 2, 3]),
        ((50, 60, 60, 50, 60, 70), (3, 2, 2.5, 0.1, 1, 9), [1, 2, 5, 6], [0, 0, 1, 2, 3, 0]),
        ((math.nan, 1, 1), (1, math.nan, 0.5), [2], [1, 0, 1]),
        ((1, 1, 2), (math.inf, 3, math.inf), [1, 2, 3], [0, 1, 0]),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_of_epochs_with_the_same_metric_the_one_with_the_lowest_loss_is_the_best(
    values: tuple[float, ...], losses: tuple[float, ...], best: list[int], without_progress: list[int], sign: int
) -> None:
    progress, found, waited = Progress(), [], []
    for value, loss in zip(values, losses, strict=True):
        if progress.note_value(sign * value, loss, higher_is_better=sign > 0):
            found.append(progress.best_epoch)
        progress.epoch += 1
        waited.append(progress.epochs_without_progress())
    assert (found, waited) == (best, without_progress)


def test_a_run_that_an_earlier_version_began_goes_on() -> None:
    progress = Progress(epoch=4, best_epoch=2, best_value=50.0)  # what it saved
    assert progress.epochs_without_progress() == 2
    assert not progress.note_value(50.0, 0.1, higher_is_better=True)  # the loss of the best epoch is not known
    assert progress.note_value(51.0, 0.2, higher_is_better=True)


def test_what_is_counted_before_the_first_step_and_the_first_best_epoch() -> None:
    progress = Progress()
    assert progress.mean_loss() == 0.0
    assert Progress(recent_steps=1, recent_loss=3.0).mean_loss() == 3.0
    assert Progress(epoch=2).epochs_without_progress() == 2
    assert (progress.epoch, progress.step, progress.records, progress.seconds, progress.recent_seconds) == (0,) * 5


def test_a_terminal_shows_how_far_the_training_is(terminal: Callable[[], str]) -> None:
    def shown(progress: Progress, *, visible: bool = True) -> str:
        bar = ProgressBar(20, 2.5, visible=visible)
        bar.on_start(progress)
        progress.step += 1
        bar.on_step(progress, 0.7)
        bar.on_end()
        return terminal()

    text = shown(Progress(epoch=1, step=5, recent_steps=2, recent_loss=1.0))
    assert re.search(r"steps +\S* +5/20 .*6/20 .* epoch 2/2.5, loss 0.5000 ", text, re.DOTALL)
    assert "best" not in text
    text = shown(Progress(recent_steps=1, recent_loss=0.25, best_epoch=1, best_value=41.5))
    assert "epoch 1/2.5, best 41.50, loss 0.2500 " in text
    assert shown(Progress(), visible=False) == ""


def test_callbacks_hear_of_every_step_and_epoch_and_of_the_end(config_file: Path, tmp_path: Path) -> None:
    noting, began = Noting(), time.monotonic()
    train(config_file, tmp_path / "run", overrides=["trainer.num_epochs=2", "trainer.trackers=[]"], callbacks=[noting])
    ended = time.monotonic()
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert noting.records == records
    assert noting.steps == list(range(1, records[-1]["step"] + 1))
    first = noting.losses[: records[0]["step"]]
    assert sum(first) / len(first) == pytest.approx(records[0]["training"]["loss"])
    for record in records:
        assert 0 < record["training"]["seconds"] == round(record["training"]["seconds"], 2) <= record["seconds"]
        assert record["seconds"] == round(record["seconds"], 2)
    assert sum(record["seconds"] for record in records) <= ended - began
    assert noting.seconds == pytest.approx(sum(record["training"]["seconds"] for record in records), abs=0.02)
    assert noting.ends == 1
    assert not (tmp_path / "run" / "tensorboard").exists()  # as there are no trackers


class Stopping(Callback):
    """Stops the training after a step or an epoch."""

    def __init__(self, step: int | None = None, epoch: int | None = None) -> None:
        self._step, self._epoch = step, epoch

    def on_step(self, progress: Progress, loss: float) -> None:
        if progress.step == self._step:
            self.trainer.stop()

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        if record["epoch"] == self._epoch:
            self.trainer.stop()


@pytest.mark.parametrize(
    ("when", "steps"), [({"step": 10}, [7, 10]), ({"step": 7}, [7]), ({"epoch": 1}, [7]), ({"epoch": 9}, [7, 14, 21])]
)
def test_a_callback_stops_the_training_and_what_has_begun_is_evaluated(
    config_file: Path, tmp_path: Path, when: dict[str, int], steps: list[int]
) -> None:
    results = train(config_file, tmp_path / "run", callbacks=[Stopping(**when)])
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == steps
    assert results["best"] == next(record for record in reversed(records) if record["best"])
    assert results["test"]


def test_resuming_repeats_no_point_of_a_curve(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_tasks.extras.trackers.trackers._STEPS_PER_POINT", 1)
    # Both trainings may write in the same second. Their files are then read in the order of this number, as text.
    monkeypatch.setattr("tensorboard.summary.writer.event_file_writer._global_uid", AtomicCounter(0))
    overrides, stopping = ["trainer.num_epochs=2", "trainer.checkpoint_every_steps=4"], Noting(stop_at=6)
    with pytest.raises(KeyboardInterrupt):
        train(config_file, tmp_path / "run", overrides=overrides, callbacks=[stopping])
    assert stopping.ends == 1
    train(config_file, tmp_path / "run", overrides=overrides, resume=True)
    (folder,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert curve(folder, "step/loss") == list(range(1, 15))
    assert curve(folder, "validation/f1") == [7, 14]


def test_unknown_and_missing_trackers_are_config_errors(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"trainer\.trackers.*wandbb"):
        train(config_file, tmp_path / "run", overrides=['trainer.trackers=["wandbb"]'])
    monkeypatch.setattr(processes, "get_available_trackers", lambda: ["tensorboard"])
    with pytest.raises(ConfigError, match=r"trainer\.trackers: wandb cannot be imported; .* installed: tensorboard"):
        train(config_file, tmp_path / "run", overrides=['trainer.trackers=["wandb", "tensorboard"]'])
    assert not (tmp_path / "run").exists()
