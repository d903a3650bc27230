"""What `tune` says of a search, and where its trials go."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

import elmo_tasks.studies.search_trials
from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError

Printed = Callable[[], tuple[str, list[list[str]]]]


@pytest.fixture(autouse=True)
def search_file(config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search, `mine.json` in the current folder."""
    monkeypatch.chdir(tmp_path)
    space = {
        "trainer.optimizer.lr": {"low": 0.001, "high": 0.1, "log": True},
        "trainer.num_epochs": {"low": 1, "high": 3},
        "model.dropout": {"choices": [0, 0.5]},
    }
    values = {"title": "The title", "config": config_file.name, "space": space, "trials": 3}
    Path("mine.json").write_text(json.dumps(values))


def test_the_space_says_which_values_each_key_can_have(printed: Printed) -> None:
    assert cli.main(["tune", "mine.json", "--dry-run"]) == 0
    text, rows = printed()
    assert text.startswith("The title\n")
    assert rows == [
        ["key", "kind", "values"],
        ["trainer.optimizer.lr", "numbers", "0.001 to 0.1, logarithmic"],
        ["trainer.num_epochs", "whole numbers", "1 to 3"],
        ["model.dropout", "choices", "0, 0.5"],
    ]
    assert text.splitlines()[-1].startswith("3 trials of ")


@pytest.mark.parametrize(("given", "folder"), [([], "runs/studies/mine"), (["-s", "a folder"], "a folder")])
def test_the_folder_of_a_search(
    given: list[str], folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_search = Mock(side_effect=ElmoTasksError("called"))
    monkeypatch.setattr(elmo_tasks.studies.search_trials, "run_search", run_search)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert cli.main(["tune", "mine.json", *given, "--set", "trials=2", "--ext-var", "N=V", "--jobs", "3"]) == 2
    assert capsys.readouterr().err == "error: called\n"
    (path, search), settings = run_search.call_args
    assert (path, search.config.trials) == (Path(folder), 2)
    quoted = f"'{folder}'" if " " in folder else folder
    command = f"elmo-tasks tune mine.json -s {quoted} --set trials=2 --ext-var N=V"
    assert settings == {"command": command, "num_jobs": 3}
