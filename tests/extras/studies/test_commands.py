"""What `study` says before and after the runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import elmo_tasks.extras.studies.study_training
from elmo_tasks import cli
from elmo_tasks.extras.studies.study import Study
from elmo_tasks.extras.studies.study_runs import StudyFolder

Printed = Callable[[], tuple[str, list[list[str]]]]
METRICS = '{"best": {"epoch": 1, "validation": {"f1": 50.0}}, "test": {"f1": 40.0}}'


@pytest.fixture
def study(config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study of three seeds, `mine.json` in the current folder."""
    monkeypatch.chdir(tmp_path)
    arm: dict[str, Any] = {"name": "a", "config": str(config_file), "seeds": [1, 2, 3]}
    Path("mine.json").write_text(json.dumps({"title": "The title", "arms": [arm]}))
    return Study.load("mine.json")


def test_a_plan_lists_the_runs_with_their_states_and_counts_those_to_go(study: Study, printed: Printed) -> None:
    run = StudyFolder(Path("runs/studies/mine"), study).run_folders[0]
    run.path.mkdir(parents=True)
    run.config.write_text(study.runs[0].config.model_dump_json(serialize_as_any=True))
    run.metrics.write_text(METRICS)
    run.records.write_text('{"seconds": 2.5}')
    begun = StudyFolder(Path("runs/studies/mine"), study).run_folders[1]
    begun.path.mkdir(parents=True)
    begun.config.write_text(study.runs[1].config.model_dump_json(serialize_as_any=True))
    assert cli.main(["study", "mine.json", "--dry-run"]) == 0
    text, rows = printed()
    assert text.startswith("The title\n")
    config = study.runs[0].arm.config
    assert rows == [
        ["arm", "share", "seed", "config", "state"],
        ["a", "100 %", "1", config, "finished"],
        ["a", "100 %", "2", config, "interrupted"],
        ["a", "100 %", "3", config, "missing"],
    ]
    assert text.endswith("\n3 runs in runs/studies/mine; 2 to go\n")


def test_a_study_passes_on_how_it_was_called_and_names_what_failed(
    study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_study = Mock(return_value=[])
    monkeypatch.setattr(elmo_tasks.extras.studies.study_training, "run_study", run_study)
    given = ["--set", "title=The other", "--ext-var", "N=V", "--include-package", "json"]
    assert cli.main(["study", "mine.json", "-s", "a folder", *given]) == 0
    (folder,), settings = run_study.call_args
    assert (folder.path, folder.study.config.title) == (Path("a folder"), "The other")
    assert settings == {
        "command": "elmo-tasks study mine.json -s 'a folder' --set 'title=The other' --ext-var N=V "
        "--include-package json",
        "packages": ["json"],
    }
    assert "elmo-tasks report 'a folder'\n" in capsys.readouterr().err

    run_study.return_value = ["a, seed 1: lost", "a, seed 2: lost"]
    assert cli.main(["study", "mine.json"]) == 2
    assert run_study.call_args.args[0].path == Path("runs/studies/mine")
    assert capsys.readouterr().err == (
        "error: 2 of 3 runs failed; call again to retry them:\n  a, seed 1: lost\n  a, seed 2: lost\n"
    )
