"""What `tune` says of a search, and where its trials go."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks import cli

Printed = Callable[[], tuple[str, list[list[str]]]]


@pytest.fixture(autouse=True)
def search_file(config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search, `mine.json` in the current folder."""
    monkeypatch.chdir(tmp_path)
    space = {
        "trainer.optimizer.lr": {"low": 0.001, "high": 0.1, "log": True},
        "trainer.num_epochs": {"low": 1, "high": 3, "step": 1},
        "model.dropout": {"choices": [0, 0.5]},
    }
    values = {"title": "The title", "config": config_file.name, "space": space, "trials": 3}
    Path("mine.json").write_text(json.dumps(values))


def test_the_space_says_which_values_each_key_can_have(printed: Printed) -> None:
    assert cli.main(["tune", "mine.json", "--dry-run"]) == 0
    text, rows = printed()
    assert text.startswith("The title\n")
    assert rows == [
        ["key", "values"],
        ["trainer.optimizer.lr", '{"low": 0.001, "high": 0.1, "log": true}'],
        ["trainer.num_epochs", '{"low": 1, "high": 3, "step": 1}'],
        ["model.dropout", '{"choices": [0, 0.5]}'],
    ]
    assert text.splitlines()[-1].startswith("3 trials of ")


@pytest.mark.parametrize(("given", "folder"), [([], "runs/studies/mine"), (["-s", "a folder"], "a folder")])
def test_the_folder_and_the_changes_of_a_search(given: list[str], folder: str) -> None:
    assert cli.main(["tune", "mine.json", *given, "--set", "trials=1", "--set", "changes.random_seed=3"]) == 0
    assert json.loads(Path(folder, "best.json").read_text())["random_seed"] == 3
    assert [each.name for each in Path(folder).glob("trial_*")] == ["trial_0"]
