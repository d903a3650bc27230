"""How the runs of seeds and folds are called, and what is said of them together."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from elmo_tasks.runs import repeated
from elmo_tasks.runs.repeated import mean_and_deviation, train_folds, train_seeds


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Mock:
    scores = ({"test": {"f1": value}} for value in (80.0, 90.0))
    monkeypatch.setattr(repeated, "train", train := Mock(side_effect=scores))
    return train


@pytest.mark.parametrize("main", [False, True])
def test_each_seed_has_a_run_and_the_main_process_writes_the_mean(
    main: bool, train: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated, "is_main_process", lambda: main)
    summary = train_seeds("config", tmp_path, [5, 3], overrides=["a=b"], force=True)
    assert train.call_args_list == [
        call("config", tmp_path / f"seed_{seed}", overrides=("a=b", f"random_seed={seed}"), force=True)
        for seed in (5, 3)
    ]
    assert summary == {"seeds": [5, 3], "mean": {"test/f1": 85.0}, "std": {"test/f1": pytest.approx(50**0.5)}}
    assert [json.loads(path.read_text()) for path in tmp_path.iterdir()] == [summary] * main


def test_each_fold_is_a_run_without_test_data(train: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "is_main_process", lambda: False)
    summary = train_folds("config", tmp_path, 2, overrides=["a=b"], resume=True)
    assert train.call_args_list == [
        call(
            "config",
            tmp_path / f"fold_{number}",
            overrides=("a=b", f"fold.number={number}", "fold.of=2", "test_data_path=null"),
            resume=True,
        )
        for number in (1, 2)
    ]
    assert summary == {"folds": 2, "mean": {"test/f1": 85.0}, "std": {"test/f1": pytest.approx(50**0.5)}}
    assert list(tmp_path.iterdir()) == []  # the main process writes


def test_one_run_has_no_deviation() -> None:
    assert mean_and_deviation([{"loss": 2.5}]) == {"mean": {"loss": 2.5}, "std": {"loss": 0.0}}
