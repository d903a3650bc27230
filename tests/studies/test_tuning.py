"""Searches that train: what is pruned, what fails, what is killed and what is kept."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.errors import ElmoTasksError, RunError, WriteError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.studies import tuning
from elmo_tasks.studies.searches import Search
from elmo_tasks.studies.tuning import Pruning, Tuning
from elmo_tasks.training.callbacks import Progress

SearchFile = Callable[..., str]
RATE = "trainer.optimizer.lr"


class FakeTraining:
    """Stands for `train`: each epoch scores the trial's learning rate times the epoch.

    Arguments:
        ends: by the name of a trial's folder, the error that it ends with, after its first epoch.
    """

    def __init__(self, ends: dict[str, BaseException]) -> None:
        self.ends = ends
        self.calls: dict[str, bool] = {}  # by the folder, whether a run was resumed

    def __call__(self, config_file: str, folder: Path, **settings: Any) -> dict[str, Any]:
        assert settings["overrides"][-1] == "evaluate_on_test=false"
        self.calls[folder.name] = settings["resume"]
        folder.mkdir(exist_ok=True)
        RunFolder(folder).config.touch()
        (text,) = (each for each in settings["overrides"] if each.startswith(f"{RATE}="))
        rate = float(text.partition("=")[2])
        for epoch in (1, 2, 3):
            record = {"epoch": epoch, "validation": {"f1": rate * epoch, "loss": -rate * epoch}}
            for callback in settings["callbacks"]:
                callback.on_epoch(Progress(), record)
            if error := self.ends.get(folder.name):
                raise error
        return {"best": record}


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[FrozenTrial], dict[str, bool]]]:
    """A function that trains a search in a folder, and returns its trials, and which runs were trained and resumed."""

    def run(source: str, folder: str = "s", **ends: BaseException) -> tuple[list[FrozenTrial], dict[str, bool]]:
        training = FakeTraining(ends)
        monkeypatch.setattr(tuning, "train", training)
        search = Tuning(tmp_path / folder, Search.load(source), command="c")
        search.train()
        return search.study.trials, training.calls

    return run


Tune = Callable[..., tuple[list[FrozenTrial], dict[str, bool]]]


def results(trials: list[FrozenTrial]) -> list[Any]:
    return [(each.state, each.params, each.value, each.intermediate_values) for each in trials]


@pytest.mark.parametrize("metric", ["+f1", "-loss"])
def test_trials_below_the_median_are_stopped(metric: str, search_file: SearchFile, tune: Tune) -> None:
    found, _ = tune(search_file(trials=8, metric=metric, pruning={"startup_trials": 2, "warmup_epochs": 1}))
    sign = 1 if metric == "+f1" else -1
    pruned = [each for each in found if each.state is TrialState.PRUNED]
    assert 0 < len(pruned) < 6
    for each in found:
        epochs = 2 if each in pruned else 3
        expected = {epoch: pytest.approx(sign * each.params[RATE] * epoch) for epoch in range(1, epochs + 1)}
        assert each.intermediate_values == expected
        if each in pruned:
            earlier = [other for other in found[: each.number] if other.state is TrialState.COMPLETE]
            rates = sorted(other.params[RATE] for other in earlier)
            assert len(earlier) >= 2
            assert each.params[RATE] < rates[len(rates) // 2]
    whole, _ = tune(search_file(trials=3, metric=metric, pruning={"startup_trials": 3}), "whole")
    assert {each.state for each in whole} == {TrialState.COMPLETE}


def test_the_last_epoch_stops_no_trial_and_repeated_epochs_are_reported_once(search_file: SearchFile) -> None:
    trainer = Search.load(search_file(trials=1)).experiment.trainer  # three epochs
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.ThresholdPruner(lower=5))
    trial = study.ask()

    def report(epoch: int, value: float) -> None:
        Pruning(trial, trainer).on_epoch(Progress(), {"epoch": epoch, "validation": {"f1": value}})

    report(1, 8.0)
    report(1, 1.0)  # after a resumption, which would give the same value
    assert study.trials[0].intermediate_values == {1: 8.0}
    with pytest.raises(optuna.TrialPruned):
        report(2, 1.0)
    report(3, 1.0)


@pytest.mark.parametrize("sampler", ["tpe", pytest.param("random", marks=pytest.mark.slow)])
def test_an_interrupted_search_ends_like_one_that_was_not(sampler: str, search_file: SearchFile, tune: Tune) -> None:
    settings = {"seed": 2**31, "sampler": sampler}  # Optuna takes no seeds above 2**32
    source = search_file(trials=13, **settings)
    whole, _ = tune(source, "whole")
    assert len({each.params[RATE] for each in whole}) == 13
    with pytest.raises(KeyboardInterrupt):
        tune(source, trial_4=KeyboardInterrupt())
    with pytest.raises(WriteError):  # the disk is full: this trial is not to blame
        tune(source, trial_12=WriteError("a", "full"))
    parts, trained = tune(source)
    assert results(parts) == results(whole)
    assert trained == {"trial_12": True, "trial_13": False}
    more, trained = tune(search_file(trials=14, title="Longer", text="More.", **settings))
    assert (results(more[:13]), trained) == (results(whole), {"trial_14": False})


def test_a_trial_that_was_killed_while_its_values_were_drawn_gets_the_others(
    search_file: SearchFile, tune: Tune
) -> None:
    source = search_file(trials=2)
    whole, _ = tune(source)
    journal = Path(source).parent / "s" / "trials.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    expected = [(each.params[RATE], each.params.keys()) for each in whole]
    _, second = (number for number, line in enumerate(lines) if f'"param_name":"{RATE}"'.encode() in line)
    for kept in (second, second + 1):
        journal.write_bytes(b"".join(lines[:kept]))
        found, _ = tune(source)
        assert [(each.params[RATE], each.params.keys()) for each in found] == expected


def test_a_failed_trial_does_not_end_the_search(search_file: SearchFile, tmp_path: Path, tune: Tune) -> None:
    ends = {"trial_1": ElmoTasksError("the loss is nan"), "trial_3": RuntimeError("out of\nmemory")}
    source = search_file(trials=4)
    found, trained = tune(source, **ends)
    assert [each.state is TrialState.FAIL for each in found] == [True, False, True, False]
    assert [each.user_attrs.get("error") for each in found] == ["the loss is nan", None, "out of memory", None]
    assert list(trained) == ["trial_1", "trial_2", "trial_3", "trial_4"]
    assert tune(source)[1] == {}
    tune(search_file(trials=1), "bad", trial_1=ElmoTasksError("all is lost"))
    with pytest.raises(RunError, match=r"bad: no trial has finished\n  all is lost"):
        Tuning(tmp_path / "bad", Search.load(search_file(trials=1)), command="c").write_report()


def test_a_folder_of_another_search_or_with_damage_is_refused(
    search_file: SearchFile, tmp_path: Path, tune: Tune
) -> None:
    tune(search_file(trials=1))
    with pytest.raises(RunError, match="trials of another search, which differs in config, changes, seed; -s names"):
        tune(search_file(trials=1, seed=2, changes={"trainer": {"num_epochs": 2}}))
    for damaged in (b"not a journal\n" * 100, b"[]\n", b"{}\n", b'{"op_code": 99}\n'):
        (tmp_path / "s" / "trials.journal").write_bytes(damaged)
        with pytest.raises(RunError, match=r"trials\.journal: not the journal of a search"):
            tune(search_file(trials=2))


def test_an_incomplete_line_of_the_journal_is_cut_off(search_file: SearchFile, tmp_path: Path, tune: Tune) -> None:
    first, _ = tune(search_file(trials=1))
    with (tmp_path / "s" / "trials.journal").open("ab") as journal:
        journal.write(b'{"op_code": 4, "wor')
    again, trained = tune(search_file(trials=2))
    assert (results(again[:1]), trained) == (results(first), {"trial_2": False})
    assert tune(search_file(trials=2)) == (again, {})


def test_a_full_disk_ends_the_search_and_no_trial(
    search_file: SearchFile, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    tune(search_file(trials=1))
    source = search_file(trials=2)
    with monkeypatch.context() as full:
        full.setattr("os.fsync", fail)
        with pytest.raises(WriteError, match=r"trials\.journal: cannot be written: No space"):
            tune(source)
    found, trained = tune(source)
    assert ([each.state for each in found], list(trained)) == ([TrialState.COMPLETE] * 2, ["trial_2"])


def test_a_process_that_ends_early_is_named_and_its_trials_are_trained(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (python := tmp_path / "python").write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    search = Tuning(tmp_path / "s", Search.load(search_file(trials=1)), command="elmo-tasks tune x")
    search.train(num_jobs=2)
    assert [each.state for each in search.study.trials] == [TrialState.COMPLETE]
    assert f"killed by SIGKILL (see {tmp_path / 's'}/log_" in caplog.text


def test_a_search_trains_and_its_best_config_gives_the_same_score(
    search_file: SearchFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a?b #c"
    source = search_file(trials=3, changes={"trainer": {"num_epochs": 1}})
    assert cli.main(["tune", source, "-s", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "The best of 3 trials" in said
    metrics = [json.loads((folder / f"trial_{number}" / "metrics.json").read_text()) for number in (1, 2, 3)]
    assert not any("test" in each for each in metrics)

    assert cli.main(["train", str(folder / "best.json"), "-s", str(tmp_path / "best")]) == 0
    best = json.loads((tmp_path / "best" / "metrics.json").read_text())
    assert best["best"]["validation"]["f1"] == max(each["best"]["validation"]["f1"] for each in metrics)
    assert "test" in best
    words = next(line for line in said.splitlines() if line.startswith("elmo-tasks train "))
    assert cli.main([*words.split()[1:], "-s", str(tmp_path / "set"), "--dry-run"]) == 0

    report = (folder / "report.md").read_text()
    assert "![Optimization History Plot](plots/plot_optimization_history.svg)" in report
    assert "![Hyperparameter Importances](plots/plot_param_importances.svg)" in report
    assert words in report
    assert "<svg role" in (folder / "report.html").read_text()
    assert cli.main(["report", str(folder)]) == 2
    assert "calling its `elmo-tasks tune` again writes its report" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["+f1", "-loss"])
def test_the_report_shows_the_best_trials_first(
    metric: str, search_file: SearchFile, tmp_path: Path, tune: Tune
) -> None:
    source = search_file(trials=12, metric=metric, pruning=None)
    found, _ = tune(source)
    search = Tuning(tmp_path / "s", Search.load(source), command="c")
    table, training, files = search.write_report()
    assert [path.name for path in files] == ["best.json", "report.md", "report.html"]
    ranked = sorted(found, key=lambda trial: trial.params[RATE], reverse=True)
    assert table.columns == ["trial", "optimizer.lr", "hidden_sizes.0", "model.dropout", metric[1:]]
    assert [row[0] for row in table.rows] == [str(each.number + 1) for each in ranked[:10]]
    best = load_config(files[0], ExperimentConfig)
    assert best.trainer.optimizer.lr == ranked[0].params[RATE]
    assert f"--set {RATE}={ranked[0].params[RATE]}" in training


@pytest.mark.slow
def test_processes_share_a_search_and_take_over_the_trial_of_one_that_is_killed(
    search_file: SearchFile, tmp_path: Path
) -> None:
    source = search_file(trials=4, sampler="random", pruning=None)

    def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "elmo_tasks", "tune", source, "-s", str(folder), *arguments]
        with (tmp_path / "log_parent.txt").open("ab") as log:
            return subprocess.Popen(command, stderr=log)

    whole, folder, deadline = tmp_path / "whole", tmp_path / "shared", time.monotonic() + 300
    assert cli.main(["tune", source, "-s", str(whole)]) == 0
    killed = start(folder)
    while not (folder / "trial_2" / "training.pt").is_file() and time.monotonic() < deadline:
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGSTOP)  # its trial is still claimed
    sharing = start(folder, "--jobs", "2")
    while len(list(folder.glob("*/metrics.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not (folder / "trial_2" / "metrics.json").exists()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert sharing.wait() == 0

    logs = "".join(path.read_text(encoding="utf-8") for path in [*folder.glob("log_*"), tmp_path / "log_parent.txt"])
    began = [f"trial_{number} of 4 {how}" for number in (1, 2, 3, 4) for how in ("begins", "resumed")]
    assert [logs.count(line) for line in began] == [1, 0, 1, 1, 1, 0, 1, 0]
    assert (folder / "best.json").read_bytes() == (whole / "best.json").read_bytes()
    reports = [(each / "report.md").read_text(encoding="utf-8") for each in (folder, whole)]
    assert reports[0].replace(str(folder), str(whole)).replace(" --jobs 2", "") == reports[1]
