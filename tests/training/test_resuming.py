"""A training that is stopped and resumed is the same training; a state that does not fit is an error."""

import argparse
import functools
import random
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_tasks import cli
from elmo_tasks.commands.command import Command
from elmo_tasks.errors import RunError
from elmo_tasks.files.tensor_files import read_state, write_state
from elmo_tasks.hooks import CommandRow
from elmo_tasks.runs.train import train
from elmo_tasks.training import task_training
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.state import random_state, seed_everything, set_random_state
from elmo_tasks.training.trainer import Trainer
from tests.stopping import CtrlC, Killed, assert_same_run, read_records, stop_at
from tests.training.trainers import GRADUALLY, make_trainer


def resumed(trainer: Trainer) -> Trainer:
    """A trainer of the same model that continues from the saved state."""
    records, accelerator = trainer.records, trainer.accelerator
    return Trainer(trainer.config, trainer.objective, trainer.agenda, records, accelerator, seed=1, resume=True)


@pytest.fixture(scope="module")
def whole(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a run that was not stopped, by the overrides of its config."""

    @functools.cache
    def trained(*overrides: str) -> Path:
        folder = tmp_path_factory.mktemp("whole") / "run"
        train(settings, folder, overrides=overrides)
        return folder

    return trained


@pytest.mark.parametrize(
    ("more", "stops", "recent_steps"),
    [((), [10], 1), ((*GRADUALLY, "trainer.num_epochs=3"), [6, 13], 5)],  # epochs have 7 steps
    ids=["once", "unfrozen layer by layer"],
)
def test_stopped_between_steps_and_resumed_is_the_same_run(
    config_file: Path,
    tmp_path: Path,
    whole: Callable[..., Path],
    more: tuple[str, ...],
    stops: list[int],
    recent_steps: int,
) -> None:
    """An exception stands for a kill, at a step after the last saved state; see also test_processes.py."""
    overrides = (*more, "trainer.checkpoint_every_steps=4")
    for stop in stops:
        with stop_at(stop), pytest.raises(Killed):
            train(config_file, tmp_path / "parts", overrides=overrides, resume=True)
    assert read_state(tmp_path / "parts" / "training.pt")["progress"]["recent_steps"] == recent_steps
    train(config_file, tmp_path / "parts", overrides=overrides, resume=True)
    assert_same_run(tmp_path / "parts", whole(*more))


NO_AVERAGE = "trainer.moving_average=null"


@pytest.mark.parametrize(
    ("overrides", "stops", "saved"),
    [
        ([], [{"step": 7}], [7]),  # the last of the first epoch
        ([NO_AVERAGE], [{"step": 2}, {"step": 3}, {"step": 16}], [2, 3, 16]),
        ([], [{"epoch": 2}], [7]),  # between the record and the state: the epoch is repeated
        ([NO_AVERAGE], [{"epoch": 2}], [7]),
    ],
)
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_saves_the_state_and_the_run_goes_on_bit_for_bit(
    overrides: list[str],
    stops: list[dict[str, Any]],
    saved: list[int],
    config_file: Path,
    tmp_path: Path,
    whole: Callable[..., Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = tmp_path / "run"
    caplog.set_level("INFO", "elmo_tasks.training.trainer")
    for number, (stop, step) in enumerate(zip(stops, saved, strict=True)):
        with pytest.raises(KeyboardInterrupt):
            train(config_file, run, overrides=overrides, callbacks=[CtrlC(**stop)], resume=number > 0)
        progress = read_state(run / "training.pt")["progress"]
        assert progress["step"] == step
        assert (f"saved the state of step {step}" in caplog.messages) == ("step" in stop)
    train(config_file, run, overrides=overrides, resume=True)
    assert caplog.messages[-2] == f"resumed at step {step}, epoch {progress['epoch'] + 1}"
    assert_same_run(run, whole(*overrides))


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]], ids=["one", "two"])
@pytest.mark.usefixtures("interruptible")
def test_a_signal_that_ends_the_process_lets_the_step_end_too(
    signals: list[signal.Signals],
    config_file: Path,
    tmp_path: Path,
    whole: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two are what a training gets when Ctrl-C ends the study that it is a part of."""

    def interrupted(_: argparse.Namespace) -> None:
        train(config_file, tmp_path / "run", callbacks=[CtrlC(step=4, signals=signals)])

    monkeypatch.setattr(
        cli, "COMMANDS", {"do": Command(CommandRow("", "does", "do"), lambda parser: None, interrupted)}
    )
    with pytest.raises(SystemExit) as end:
        cli.main(["do"])
    assert end.value.code == 143
    assert read_state(tmp_path / "run" / "training.pt")["progress"]["step"] == 4
    if signals == [signal.SIGTERM]:
        train(config_file, tmp_path / "run", resume=True)
        assert_same_run(tmp_path / "run", whole())


@pytest.mark.parametrize(("overrides", "epochs"), [([], 1), ([NO_AVERAGE], 2)])
def test_ctrl_c_during_an_evaluation(
    overrides: list[str],
    epochs: int,
    config_file: Path,
    tmp_path: Path,
    whole: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, evaluate = tmp_path / "run", task_training.evaluate

    def interrupted(*arguments: Any, **settings: Any) -> dict[str, float]:
        metrics = evaluate(*arguments, **settings)
        if (run / "training.pt").exists():  # after the first epoch
            raise KeyboardInterrupt
        return metrics

    with monkeypatch.context() as patch:
        patch.setattr(task_training, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(config_file, run, overrides=overrides)
    assert read_state(run / "training.pt")["progress"]["step"] == 7 * epochs
    train(config_file, run, overrides=overrides, resume=True)
    assert_same_run(run, whole(*overrides))


class Watching(Callback):
    """Saves and evaluates in two steps of each epoch and after it."""

    def __init__(self) -> None:
        self.scores: list[dict[str, float]] = []

    def on_step(self, progress: Progress, loss: float) -> None:
        if progress.recent_steps in (2, 5):
            self.trainer.save()
            self.trainer.evaluate()

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        self.trainer.save()
        self.scores.append(self.trainer.evaluate())


@pytest.mark.parametrize("overrides", [(), (NO_AVERAGE,)], ids=["averaged", "plain"])
def test_a_callback_saves_and_evaluates_and_the_run_is_the_same(
    overrides: tuple[str, ...], config_file: Path, tmp_path: Path, whole: Callable[..., Path]
) -> None:
    run, watching = tmp_path / "run", Watching()
    for stop, saved in ((11, 9), (14, 14)):  # epochs have 7 steps
        with stop_at(stop), pytest.raises(Killed):
            train(config_file, run, overrides=overrides, callbacks=[watching], resume=stop > 11)
        assert read_state(run / "training.pt")["progress"]["step"] == saved
    train(config_file, run, overrides=overrides, callbacks=[watching], resume=True)
    assert_same_run(run, whole(*overrides))
    assert watching.scores == [record["validation"] for record in read_records(run)]


def _without(state: dict[str, Any], *keys: Any) -> None:
    for key in keys[:-1]:
        state = state[key]
    del state[keys[-1]]


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another version": (lambda state: state.update(version=1), "saved by another version"),
    "no version": (lambda state: _without(state, "version"), "saved by another version.*--force"),
    "more processes": (lambda state: state.update(processes=state["processes"] * 2), "saved by 2 processes"),
    "fewer parameters": (lambda state: state["parameters"].pop(), "the parameters have other shapes"),
    "another shape": (
        lambda state: state["parameters"].__setitem__(0, torch.zeros(7, 7)), "the parameters have other shapes"
    ),
    "no groups": (lambda state: _without(state, "optimizer", "param_groups"), "not of this run .'param_groups'"),
    "no averages": (lambda state: _without(state, "average", "averages"), "not of this run .'averages'"),
    "no generator": (lambda state: _without(state, "processes", 0, "generators", "torch"), "not of this run .'torch'"),
    "a wrong generator": (
        lambda state: state["processes"][0]["generators"].update(torch=torch.zeros(3)), "not of this run .*ByteTensor"
    ),
}  # fmt: skip


def test_a_damaged_state_or_one_of_an_earlier_version_is_one_clear_error(config_file: Path, tmp_path: Path) -> None:
    trainer, training = make_trainer(
        config_file, tmp_path / "run", "trainer.trackers=[]", "model.embedder.elmo=null", "trainer.regularizers=[]"
    )
    trainer.step(next(training.steps(0)))
    trainer.checkpoint()
    path = trainer.state_file
    whole = path.read_bytes()
    resumed(trainer)
    for name, (damage, problem) in DAMAGES.items():
        path.write_bytes(whole)
        state = read_state(path)
        damage(state)
        write_state(path, state)
        with pytest.raises(RunError, match=rf"training\.pt: .*{problem}") as caught:
            resumed(trainer)
        assert "\n" not in str(caught.value), name
    begin = whole.index(next(iter(trainer.parameters.values())).detach().numpy().tobytes())
    path.write_bytes(whole[:begin] + bytes([whole[begin] ^ 1]) + whole[begin + 1 :])
    with pytest.raises(RunError, match=r"training\.pt: damaged, .*the checksum of .*/data/\d+ is wrong"):
        resumed(trainer)


def draw() -> tuple[float, ...]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


@pytest.mark.parametrize("seed", [5, 2**32 + 5])
def test_random_state_goes_round(seed: int) -> None:
    seed_everything(seed)
    state = random_state()
    first = draw()
    set_random_state(state)
    assert draw() == first
    seed_everything(seed)
    assert draw() == first
    seed_everything(6)
    assert all(one != other for one, other in zip(draw(), first, strict=True))
