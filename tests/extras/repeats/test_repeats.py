"""Trainings for several seeds and for each fold: their runs, and what is said of all of them."""

import json
import math
import statistics
from pathlib import Path

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.extras.repeats import repeats
from elmo_tasks.extras.repeats.repeats import mean_and_deviation, print_summary, train_folds, train_seeds
from elmo_tasks.files.text import read_lines
from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from tests.runs.small_runs import SmallRun


def test_each_seed_has_a_run_and_the_main_process_writes_the_mean(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, overrides = tmp_path / "runs", ("trainer.num_epochs=1", "random_seed=1")
    summary = train_seeds(config_file, folder, (5, 3), overrides=overrides)
    runs = [SmallRun(folder / f"seed_{seed}", config_file) for seed in (5, 3)]
    assert [run.json("config.json")["random_seed"] for run in runs] == [5, 3]  # not that of the overrides
    losses = [run.json("metrics.json")["test"]["loss"] for run in runs]
    assert losses[0] != losses[1]
    assert summary["mean"]["test/loss"] == pytest.approx(statistics.fmean(losses))
    assert summary["std"]["test/loss"] == pytest.approx(statistics.stdev(losses))
    assert json.loads((folder / "seeds.json").read_text()) == summary
    assert summary["seeds"] == [5, 3]
    (folder / "seeds.json").unlink()
    monkeypatch.setattr(repeats, "is_main_process", lambda: False)
    assert train_seeds(config_file, folder, (5, 3), overrides=overrides, resume=True) == summary
    assert not (folder / "seeds.json").exists()


def test_folds_hold_out_every_training_example_once(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    overrides = ("trainer.num_epochs=2", "test_data_path=gone.txt", "fold.seed=4")  # the fold replaces the test data
    summary = train_folds(config_file, folder, 2, overrides=overrides)
    runs = [SmallRun(folder / f"fold_{number}", config_file) for number in (1, 2)]
    pairs = [[json.loads(line) for _, line in read_lines(run.path / "predictions.jsonl")] for run in runs]
    held_out = [[pair["example"]["line"] for pair in fold] for fold in pairs]
    assert all(lines == sorted(lines) for lines in held_out)
    data = Data.read(load_config(config_file, ExperimentConfig))
    assert sorted(held_out[0] + held_out[1]) == list(data.training["line"])
    documents = [{pair["example"]["document"] for pair in fold} for fold in pairs]
    assert documents[0].isdisjoint(documents[1])

    metric = SpanF1()
    for pair in pairs[0] + pairs[1]:
        metric.update([pair["prediction"]], [pair["example"]])
    assert summary["pooled"] == metric.compute()
    assert summary == json.loads((folder / "folds.json").read_text())
    scores = [run.json("metrics.json")["test"]["f1"] for run in runs]
    assert (summary["folds"], summary["mean"]["test/f1"]) == (2, pytest.approx(statistics.fmean(scores)))
    assert train_folds(config_file, folder, 2, overrides=overrides, resume=True) == summary
    (folder / "folds.json").unlink()
    monkeypatch.setattr(repeats, "is_main_process", lambda: False)
    rest = {name: value for name, value in summary.items() if name != "pooled"}
    assert train_folds(config_file, folder, 2, overrides=overrides, resume=True) == rest
    assert not (folder / "folds.json").exists()


def test_mean_and_deviation_of_what_all_runs_have() -> None:
    summary = mean_and_deviation([{"test": {"f1": 90.0, "f1/LOC": 80.0}}, {"test": {"f1": 92.0}}])
    assert summary == {"mean": {"test/f1": 91.0}, "std": {"test/f1": pytest.approx(2**0.5)}}
    assert math.isnan(mean_and_deviation([{"loss": math.nan}, {"loss": 1.0}])["std"]["loss"])
    assert mean_and_deviation([{"loss": 2.5}]) == {"mean": {"loss": 2.5}, "std": {"loss": 0.0}}


def test_only_what_all_runs_have_gets_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary({"folds": 3, "mean": {"test/f1": 1.0, "f1": 2.0}, "std": {"test/f1": 0.5, "f1": 0.25}})
    text = capsys.readouterr().out
    assert text.startswith("test, 3 folds\n")
    assert not {"validation", "0.25"} & {*text.replace(",", " ").split()}
