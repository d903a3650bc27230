"""Trainings for several seeds: their runs, and what is said of all of them."""

import json
import math
import statistics
from pathlib import Path

import pytest

from elmo_tasks.extras.repeats import repeats
from elmo_tasks.extras.repeats.repeats import mean_and_deviation, print_summary, train_seeds
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


def test_mean_and_deviation_of_what_all_runs_have() -> None:
    summary = mean_and_deviation([{"test": {"f1": 90.0, "f1/LOC": 80.0}}, {"test": {"f1": 92.0}}])
    assert summary == {"mean": {"test/f1": 91.0}, "std": {"test/f1": pytest.approx(2**0.5)}}
    assert math.isnan(mean_and_deviation([{"loss": math.nan}, {"loss": 1.0}])["std"]["loss"])
    assert mean_and_deviation([{"loss": 2.5}]) == {"mean": {"loss": 2.5}, "std": {"loss": 0.0}}


def test_only_what_all_runs_have_gets_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary({"seeds": [1, 2, 3], "mean": {"test/f1": 1.0, "f1": 2.0}, "std": {"test/f1": 0.5, "f1": 0.25}})
    text = capsys.readouterr().out
    assert text.startswith("test, 3 seeds\n")
    assert not {"validation", "0.25"} & {*text.replace(",", " ").split()}
