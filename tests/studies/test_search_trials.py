"""Searches that train: what is pruned, what fails, what is killed and what is kept."""

from __future__ import annotations

import dataclasses
import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.errors import ElmoTasksError, RunError, WriteError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.studies import search_trials
from elmo_tasks.studies.search_results import SearchResults
from elmo_tasks.studies.search_trials import Pruning, run_search
from elmo_tasks.studies.searches import Search
from elmo_tasks.training.callbacks import Progress

SearchFile = Callable[..., str]


class FakeTraining:
    """Stands for `train`: each epoch scores the trial's learning rate times the epoch.

    Arguments:
        ends: by the number of a call, from 1, an error instead of its first epoch; a RuntimeError comes after it.
    """

    def __init__(self, ends: dict[int, BaseException] | None = None) -> None:
        self.ends = ends or {}
        self.folders: list[str] = []
        self.resumed: list[bool] = []

    def __call__(self, config_file: str, folder: Path, **settings: Any) -> dict[str, Any]:
        assert settings["overrides"][-1] == "evaluate_on_test=false"
        self.folders.append(folder.name)
        self.resumed.append(settings["resume"])
        folder.mkdir(exist_ok=True)
        RunFolder(folder).config.touch()
        error = self.ends.get(len(self.folders))
        if error and not isinstance(error, RuntimeError):
            raise error
        (text,) = (each for each in settings["overrides"] if each.startswith("trainer.optimizer.lr="))
        rate = float(text.partition("=")[2])
        for epoch in (1, 2, 3):
            record = {"epoch": epoch, "validation": {"f1": rate * epoch, "loss": -rate * epoch}}
            for callback in settings["callbacks"]:
                callback.on_epoch(Progress(), record)
            if error:
                raise error
        return {"best": record}


def search(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **ends: Any) -> tuple[Any, list[str]]:
    training = FakeTraining({int(name[1:]): error for name, error in ends.items()})
    monkeypatch.setattr(search_trials, "train", training)
    return run_search(folder, Search.load(source), command="c"), training.folders


def names(numbers: Sequence[int]) -> list[str]:
    return [f"trial_{number}" for number in numbers]


@pytest.mark.parametrize("metric", ["+f1", "-loss"])
def test_trials_below_the_median_are_stopped(
    metric: str, search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = search_file(trials=8, metric=metric, pruning={"startup_trials": 2, "warmup_epochs": 1})
    found, _ = search(source, tmp_path / "s", monkeypatch)
    sign = 1 if metric == "+f1" else -1
    pruned = [each for each in found if each.state == "pruned"]
    assert 0 < len(pruned) < 6
    assert [each.epochs for each in found] == [2 if each in pruned else 3 for each in found]
    for each in found:
        assert each.score == pytest.approx(sign * each.values["trainer.optimizer.lr"] * each.epochs)
        earlier = [other for other in found[: each.number - 1] if other.state == "finished"]
        rates = sorted(other.values["trainer.optimizer.lr"] for other in earlier)
        if each in pruned:
            assert len(earlier) >= 2
            assert each.values["trainer.optimizer.lr"] < rates[len(rates) // 2]
    whole, _ = search(
        search_file(trials=3, metric=metric, pruning={"startup_trials": 3}), tmp_path / "whole", monkeypatch
    )
    assert {each.state for each in whole} == {"finished"}


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


def test_a_search_goes_on_with_the_trial_that_was_interrupted(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    source = search_file(trials=2, seed=5)
    whole, _ = search(source, tmp_path / "whole", monkeypatch)
    folder = tmp_path / "parts"
    with pytest.raises(WriteError):  # the disk is full: this trial is not to blame
        search(source, folder, monkeypatch, _2=WriteError("a", "full"))
    assert [each.number for each in SearchResults.read(folder).trials] == [1]
    training = FakeTraining()
    monkeypatch.setattr(search_trials, "train", training)
    again = search_file(trials=3, seed=5, title="Longer", text="More.")
    found = run_search(folder, Search.load(again), command="c")
    assert (found[:2], training.folders, training.resumed) == (whole, names([2, 3]), [True, False])
    said = " ".join(caplog.messages)
    assert [f"trial {number}: " in said for number in ("2 of 2 begins", "2 of 3 resumed", "3 of 3 begins")] == [
        True
    ] * 3
    assert f"trial 3: f1 {found[2].score:.2f}" in said
    results = SearchResults.read(folder)
    assert (results.trials, results.record.config.title, results.record.command) == (found, "Longer", "c")
    best = load_config(folder / "best.json", ExperimentConfig)
    assert best.trainer.optimizer.lr == max(each.values["trainer.optimizer.lr"] for each in found)
    assert best == Search.load(again).resolve(results.best().overrides)
    with pytest.raises(RunError, match="trials of another search, which differs in config, changes, sampler; -s names"):
        search(
            search_file(trials=4, seed=5, sampler="random", changes={"trainer": {"num_epochs": 2}}), folder, monkeypatch
        )


@pytest.mark.slow
def test_an_interrupted_search_ends_like_one_that_was_not(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = search_file(trials=12, seed=5)
    whole, _ = search(source, tmp_path / "whole", monkeypatch)
    folder = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        search(source, folder, monkeypatch, _4=KeyboardInterrupt())
    with pytest.raises(WriteError):  # the disk is full: this trial is not to blame
        search(source, folder, monkeypatch, _9=WriteError("a", "full"))
    parts, trained = search(source, folder, monkeypatch)
    assert parts == whole
    assert trained == names([12])  # 4 to 11 went before, and the twelfth was interrupted
    assert SearchResults.read(folder).trials == parts
    again, trained = search(source, folder, monkeypatch)
    assert (again, trained) == (parts, [])
    more, trained = search(search_file(trials=13, seed=5, title="Longer"), folder, monkeypatch)
    assert (more[:12], trained) == (parts, names([13]))
    other, _ = search(search_file(trials=12, seed=6), tmp_path / "other", monkeypatch)
    assert all(one.values != another.values for one, another in zip(other, whole, strict=True))


def test_a_failed_trial_does_not_end_the_search(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {"_1": ElmoTasksError("the loss is nan"), "_3": RuntimeError("out of\nmemory")}
    found, trained = search(search_file(trials=4), tmp_path / "s", monkeypatch, **ends)
    assert [each.state for each in found] == ["failed", "finished", "failed", "finished"]
    assert [each.error for each in found] == ["the loss is nan", None, "out of memory", None]
    assert [each.epochs for each in found] == [0, 3, 1, 3]
    assert [each.score is None for each in found] == [True, False, True, False]
    assert trained == names([1, 2, 3, 4])
    results = SearchResults.read(tmp_path / "s")
    assert len(results.scores) == 2
    assert results.best().score == max(results.scores)
    zero = dataclasses.replace(results, trials=[each.model_copy(update={"score": 0.0}) for each in results.trials])
    assert zero.scores == [0.0] * 4
    search(search_file(trials=1), tmp_path / "bad", monkeypatch, _1=ElmoTasksError("all is lost"))
    with pytest.raises(RunError, match=r"no trial has a score\n  trial 1: all is lost"):
        SearchResults.read(tmp_path / "bad")


@pytest.mark.slow
def test_a_folder_of_another_search_or_with_damage_is_refused(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "s"
    search(search_file(trials=1), folder, monkeypatch)
    with pytest.raises(RunError, match="trials of another search, which differs in seed; -s names another folder"):
        search(search_file(trials=1, seed=2), folder, monkeypatch)
    for damaged in (b"not a journal\n" * 100, b"[]\n", b"{}\n", b'{"op_code": 99}\n'):
        (folder / "trials.journal").write_bytes(damaged)
        with pytest.raises(RunError, match=r"trials\.journal: not the journal of a search"):
            search(search_file(trials=2), folder, monkeypatch)
    (folder / "trials.journal").rename(folder / "trials.db")
    with pytest.raises(RunError, match=r"the trials of an earlier version \(trials.db\).*; -s names another folder"):
        search(search_file(trials=2), folder, monkeypatch)


def test_a_line_of_the_journal_that_is_not_whole_is_written_again(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "s"
    first, _ = search(search_file(trials=1), folder, monkeypatch)
    with (folder / "trials.journal").open("ab") as journal:
        journal.write(b'{"op_code": 4, "wor')
    again, trained = search(search_file(trials=2), folder, monkeypatch)
    assert (again[:1], trained) == (first, names([2]))
    assert search(search_file(trials=2), folder, monkeypatch) == (again, [])


def test_a_full_disk_ends_the_search_and_no_trial(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    search(search_file(trials=1), tmp_path / "s", monkeypatch)
    source = search_file(trials=2)
    with monkeypatch.context() as full:
        full.setattr("os.fsync", fail)
        with pytest.raises(WriteError, match=r"trials\.journal: cannot be written: No space"):
            search(source, tmp_path / "s", monkeypatch)
    found, trained = search(source, tmp_path / "s", monkeypatch)
    assert ([each.state for each in found], trained) == (["finished"] * 2, names([2]))


def test_processes_that_end_before_the_search_are_named(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (python := tmp_path / "python").write_text('#!/bin/sh\n[ "$3 $5" = "tune -s" ] && kill -9 $$\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    folder, source = tmp_path / "s", search_file(trials=3)
    search(search_file(trials=1), folder, monkeypatch)
    problem = (
        rf"s: 2 trials not trained; call again to go on:(\n  killed by SIGKILL \(see {folder}/log_.*_[12]\.txt\)){{2}}$"
    )
    with pytest.raises(RunError, match=problem):
        run_search(folder, Search.load(search_file(trials=3)), command=f"elmo-tasks tune {source} -s", num_jobs=2)


def test_the_random_sampler_draws_each_trial_by_itself(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = search(search_file(trials=12, sampler="random", pruning=None), tmp_path / "s", monkeypatch)
    assert len({each.values["trainer.optimizer.lr"] for each in found}) == 12
    assert {each.values["model.dropout"] for each in found} == {0.0, 0.3}
    sizes = {each.values["model.encoder.hidden_sizes.0"] for each in found}
    assert len(sizes) > 2
    assert sizes <= {4, 5, 6, 7, 8}


def test_a_search_trains_and_its_best_config_gives_the_same_score(
    search_file: SearchFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a?b #c"  # what an address of a database would take apart
    source = search_file(trials=3, changes={"trainer": {"num_epochs": 1}})
    assert cli.main(["tune", source, "-s", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "The best of 3 trials" in said
    assert "Expected best validation f1 by the number of trials" in said
    results = SearchResults.read(folder)
    for trial in results.trials:
        metrics = json.loads((folder / trial.folder / "metrics.json").read_text())
        assert "test" not in metrics
        assert metrics["best"]["validation"]["f1"] == trial.score

    assert cli.main(["train", str(folder / "best.json"), "-s", str(tmp_path / "best")]) == 0
    metrics = json.loads((tmp_path / "best" / "metrics.json").read_text())
    assert metrics["best"]["validation"]["f1"] == results.best().score == max(results.scores)
    assert "test" in metrics
    words = next(line for line in said.splitlines() if line.startswith("elmo-tasks train "))
    assert cli.main([*words.split()[1:], "-s", str(tmp_path / "set"), "--dry-run"]) == 0

    capsys.readouterr()
    assert cli.main(["report", str(folder)]) == 0
    assert capsys.readouterr().out.split("\n")[:-1] == [str(folder / name) for name in ("report.md", "report.html")]
    report = (folder / "report.md").read_text()
    assert "![Expected best score](plots/expected_best.svg)" in report
    assert words in report
    assert "<svg role" in (folder / "report.html").read_text()


def report(folder: Path, whole: Path) -> str:
    """The report of a search, as if its folder were that of the whole one."""
    assert cli.main(["report", str(folder)]) == 0
    return (folder / "report.md").read_text(encoding="utf-8").replace(str(folder), str(whole))


@pytest.mark.slow
def test_processes_share_a_search_and_take_over_the_trial_of_one_that_is_killed(
    search_file: SearchFile, tmp_path: Path
) -> None:
    source = search_file(trials=4, sampler="random", pruning=None)

    def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "elmo_tasks", "tune", source, "-s", str(folder), *arguments])

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

    logs = "".join(path.read_text(encoding="utf-8") for path in folder.glob("log_*.txt"))
    began = [f"trial {number} of 4 {how}" for number in (1, 2, 3, 4) for how in ("begins", "resumed")]
    assert [logs.count(line) for line in began] == [0, 0, 0, 1, 1, 0, 1, 0]
    for name in ("trials.jsonl", "best.json"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert report(folder, whole) == report(whole, whole)
