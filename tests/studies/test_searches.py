"""A search's file: its space, and every way in which it can be wrong."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.config.packaged import find_search, packaged_searches
from elmo_tasks.errors import ConfigError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.sample_data import ALL_TASKS, write_sample_data
from elmo_tasks.studies.searches import Search, as_changes

SearchFile = Callable[..., str]


def test_values_are_drawn_as_the_space_says(search_file: SearchFile) -> None:
    space = {
        "trainer.optimizer.lr": {"low": 0.001, "high": 0.1, "log": True},
        "model.dropout": {"low": 0, "high": 0.5, "step": 0.25},
        "model.embedder.elmo.gamma": {"low": 0, "high": 2},
        "model.encoder.hidden_sizes.0": {"low": 4, "high": 8, "step": 2},
        "trainer.num_epochs": {"choices": [1, 2]},
    }
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1)).ask()
    search = Search.load(search_file(space, metric="-loss"))
    for key, dimension in search.config.space.items():
        dimension.suggest(trial, key)
    distributions = optuna.distributions
    assert trial.distributions == {
        "trainer.optimizer.lr": distributions.FloatDistribution(0.001, 0.1, log=True),
        "model.dropout": distributions.FloatDistribution(0, 0.5, step=0.25),
        "model.embedder.elmo.gamma": distributions.FloatDistribution(0, 2),
        "model.encoder.hidden_sizes.0": distributions.FloatDistribution(4, 8, step=2),
        "trainer.num_epochs": distributions.CategoricalDistribution(("1", "2")),
    }
    config = search.resolve(as_changes(trial.params))
    assert config.trainer.optimizer.lr == trial.params["trainer.optimizer.lr"]
    assert config.trainer.num_epochs == int(trial.params["trainer.num_epochs"])
    assert config.trainer.metric_name == "loss"


def test_variables_of_a_search_are_those_of_its_config(search_file: SearchFile, config_file: Path) -> None:
    config = config_file.with_name("experiment.jsonnet")
    config.write_text("(import 'experiment.json') { random_seed: std.parseInt(std.extVar('SEED')) }")
    source = search_file({"model.dropout": {"low": 0, "high": 0.5}}, config=config.name, variables={"SEED": "7"})
    for given, seed in (({}, 7), ({"SEED": "8"}, 8)):
        search = Search.load(source, variables=given)
        assert (search.experiment.random_seed, search.resolve([]).random_seed) == (seed, seed)
        assert search.variables == {"SEED": str(seed)}


def test_the_command_of_a_trial_trains_its_config(search_file: SearchFile) -> None:
    space = {"trainer.optimizer.lr": {"low": 0.001, "high": 0.1}}
    search = Search.load(search_file(space, changes={"trainer": {"optimizer": {"lr": 0.5}}}))
    changes = ["trainer.optimizer.lr=0.01"]
    words = shlex.split(search.train_command(changes))
    assert words[:2] == ["elmo-tasks", "train"]
    overrides = [word for option, word in itertools.pairwise(words) if option == "--set"]
    assert load_config(words[2], ExperimentConfig, overrides) == search.resolve(changes)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"model.dropuot": {"low": 0, "high": 0.5}}, "space: model.dropuot = 0: --set model.dropuot: unknown key. "
         "Did you mean 'dropout'?"),
        ({"model.dropout": {"low": 0, "high": 1.5}}, "space: model.dropout = 1.5: --set model.dropout: expected "),
        ({"trainer.num_epochs": {"low": 1, "high": 3}}, "space: trainer.num_epochs = 1.63"),
        ({"trainer.num_epochs": {"low": 1, "high": 2, "step": 0.5}}, "space: trainer.num_epochs = 1.5: "),
        ({"model.type": {"choices": ["crf_tagger", "crf"]}}, 'space: model.type = "crf": '),
        ({"model.encoder.hidden_sizes.7": {"low": 1, "high": 2}}, "is a list of 2: there is no index 7"),
        ({"train_data_path": {"choices": ["nowhere"]}}, "nowhere: no such file"),
        ({"trainer.validation_metric": {"choices": ["+f1", "-loss"]}}, "expected the same validation metric in all"),
        ({"model.dropout": {"low": 0.5, "high": 0.1}}, "space: model.dropout: `low <= high` must hold"),
        ({"model.dropout": {"low": 0, "high": 0.1, "log": True}}, "space: model.dropout: `low > 0` must hold"),
        ({"model.dropout": {"low": 0.1, "high": 0.2, "log": True, "step": 0.1}}, "`step` is not supported when `log`"),
        ({"model.dropout": {"low": 0, "high": 1e300, "step": 50}}, "space: model.dropout: "),
        ({"model.dropout": {"low": 0, "high": 0.5, "step": 0.2}}, "the range is not divisible by `step`"),
        ({"model.dropout": {"low": 0}}, "space: model.dropout: expected 'low' and 'high', or only 'choices'"),
        ({"model.dropout": {}}, "space: model.dropout: expected 'low' and 'high', or only 'choices'"),
        ({"model.dropout": {"log": True, "choices": [1]}}, "expected 'low' and 'high', or only 'choices'"),
        ({"model.dropout": {"low": 0, "high": 1, "step": 0}}, "space.model.dropout.step: "),
        ({"model.dropout": {"choices": []}}, "space.model.dropout.choices: "),
        ({"model.dropout": {"low": "0", "high": 1}}, "space.model.dropout.low: "),
        ({"model.dropout": {"low": 0, "hgih": 1}}, "Did you mean 'high'?"),
        ({}, "space: "),
        ({"model.encoder": {"choices": [{"type": "stacked_bilstm", "hidden_sizes": [4]}]},
          "model.encoder.dropout": {"low": 0, "high": 0.5}},
         "space: model.encoder.dropout: within model.encoder, which is searched as a whole"),
    ],
)  # fmt: skip
def test_problems_are_found_before_anything_runs(
    space: dict[str, Any], message: str, search_file: SearchFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = search_file(space)
    assert cli.main(["tune", source, "-s", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "runs").exists()


def test_all_problems_are_named_at_once(search_file: SearchFile) -> None:
    space = {"model.dropout": {"low": -1, "high": 2}, "model.nothing": {"choices": [1]}}
    with pytest.raises(ConfigError) as caught:
        Search.load(search_file(space, changes={"fold": {"number": 1, "of": 2}}))
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert "fold: a search scores the validation data" in lines[0]


def test_other_kinds_of_files_are_told_apart(
    search_file: SearchFile, config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = search_file({"model.dropout": {"low": 0, "high": 0.5}})
    assert cli.main(["train", source, "--dry-run"]) == cli.main(["study", source]) == 2
    assert capsys.readouterr().err.count("use `elmo-tasks tune`") == 2
    assert cli.main(["tune", str(config_file)]) == 2
    assert "describes a task, not a search; use `elmo-tasks train`" in capsys.readouterr().err
    assert cli.main(["tune"]) == 2
    assert "no search given; give a file or a name of --list" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged_searches())
def test_every_search_of_the_package_is_valid_anywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "runs" / "quick-data"
    write_sample_data(data, ALL_TASKS, sentences=(6, 2, 2))
    monkeypatch.setenv("ELMO_TASKS_DATA", str(data))
    assert len(Search.load(name).config.space) == 4
    assert cli.main(["tune", "--list"]) == 0
    assert f"{name} " in capsys.readouterr().out
    with pytest.raises(ConfigError, match=f"Did you mean '{name}'"):
        find_search(f"{name}s")


@pytest.mark.slow
def test_the_search_of_the_documentation_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sample_data(tmp_path / "data", "ner", sentences=(6, 2, 2))
    monkeypatch.setenv("ELMO_TASKS_DATA", str(tmp_path / "data"))
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "search.json").write_text(block)
    assert len(Search.load(str(tmp_path / "search.json")).config.space) == 3


def test_without_optuna_the_extra_is_named(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = search_file({"model.dropout": {"low": 0, "high": 0.5}})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["tune", source, "-s", str(tmp_path / "runs")]) == 2
    assert "which is not installed: pip install 'elmo-tasks[tune]'" in capsys.readouterr().err
