"""A search's file: its space, every way in which it can be wrong, and the expected best score."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.config.packaged import find_search, packaged_searches
from elmo_tasks.errors import ConfigError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.sample_data import ALL_TASKS, write_sample_data
from elmo_tasks.studies.search_results import SearchRecord, TrialResult, short_names
from elmo_tasks.studies.searches import Dimension, Search, expected_best

SearchFile = Callable[..., str]
SCORES = [3.0, 1.0, 4.0, 1.0, 5.5]  # two are equal


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("best", "higher"), [(max, True), (min, False)])
def test_the_expected_best_is_the_mean_over_all_samples(count: int, best: Callable[..., float], higher: bool) -> None:
    drawn = [best(sample) for sample in itertools.product(SCORES, repeat=count)]
    assert expected_best(SCORES, count, higher_is_better=higher) == pytest.approx(statistics.fmean(drawn))
    drawn = [best(sample) for sample in itertools.combinations(SCORES, count)]
    found = expected_best(SCORES, count, higher_is_better=higher, replacement=False)
    assert found == pytest.approx(statistics.fmean(drawn))


def test_a_sample_without_replacement_has_an_end() -> None:
    assert expected_best(SCORES, 6) < 5.5
    with pytest.raises(ValueError, match="got a sample of 6 from 5 scores"):
        expected_best(SCORES, 6, replacement=False)


def test_keys_are_as_short_as_they_can_be() -> None:
    keys = ["model.dropout", "model.elmo.dropout", "trainer.optimizer.lr", "sizes.0", "lr2", "dropout"]
    assert short_names(keys) == ["model.dropout", "elmo.dropout", "lr", "sizes.0", "lr2", "dropout"]


def test_a_key_that_takes_whole_numbers_gets_no_others(search_file: SearchFile) -> None:
    source = search_file(
        {
            "model.encoder.hidden_sizes.0": {"low": 4, "high": 8, "step": 2},
            "model.embedder.characters.filters": {"low": 1, "high": 64, "log": True},
            "model.embedder.elmo.gamma": {"low": 0, "high": 2},
            "trainer.optimizer.lr": {"low": 1e-4, "high": 1, "log": True},
            "model.dropout": {"choices": [0, 0.5]},
        },
        metric="-loss",
        changes={"trainer": {"num_epochs": 1}},
    )
    search = Search.load(source)
    assert [(each.key, each.whole) for each in search.parameters] == [
        ("model.encoder.hidden_sizes.0", True),
        ("model.embedder.characters.filters", True),
        ("model.embedder.elmo.gamma", False),
        ("trainer.optimizer.lr", False),
        ("model.dropout", False),
    ]
    assert search.experiment.trainer.validation_metric == "-loss"
    config = search.resolve(['model.encoder={"type": "stacked_bilstm", "hidden_sizes": [5]}'])
    assert (config.trainer.num_epochs, config.trainer.metric_name) == (1, "loss")


def test_values_are_drawn_as_the_space_says(search_file: SearchFile) -> None:
    optuna = pytest.importorskip("optuna")
    space = {
        "trainer.optimizer.lr": {"low": 0.001, "high": 0.1, "log": True},
        "model.dropout": {"low": 0, "high": 0.5, "step": 0.25},
        "model.embedder.characters.filters": {"low": 2, "high": 64, "log": True},
        "model.encoder.hidden_sizes.0": {"low": 4, "high": 8, "step": 2},
        "trainer.num_epochs": {"choices": [1, 2]},
    }
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1)).ask()
    for parameter in Search.load(search_file(space)).parameters:
        assert json.loads(parameter.suggest(trial)) == json.loads(str(trial.params[parameter.key]))
    distributions = optuna.distributions
    assert trial.distributions == {
        "trainer.optimizer.lr": distributions.FloatDistribution(0.001, 0.1, log=True),
        "model.dropout": distributions.FloatDistribution(0, 0.5, step=0.25),
        "model.embedder.characters.filters": distributions.IntDistribution(2, 64, log=True),
        "model.encoder.hidden_sizes.0": distributions.IntDistribution(4, 8, step=2),
        "trainer.num_epochs": distributions.CategoricalDistribution(("1", "2")),
    }


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"low": 0, "high": 0.5, "step": 0.25}, "0 to 0.5 in steps of 0.25"),
        ({"low": 1e-05, "high": 1, "log": True}, "1e-05 to 1, logarithmic"),
        ({"low": -1, "high": 1.5}, "-1 to 1.5"),
        ({"low": 3, "high": 3}, "3"),
        ({"choices": (None, "x", 1, True, [0.5])}, 'null, "x", 1, true, [0.5]'),
    ],
)
def test_values_are_told_in_short(settings: dict[str, Any], text: str) -> None:
    assert str(Dimension(**settings)) == text


def test_variables_of_a_search_are_those_of_its_config(search_file: SearchFile, config_file: Path) -> None:
    config = config_file.with_name("experiment.jsonnet")
    config.write_text("(import 'experiment.json') { random_seed: std.parseInt(std.extVar('SEED')) }")
    source = search_file({"model.dropout": {"low": 0, "high": 0.5}}, config=config.name, variables={"SEED": "7"})
    for given, seed in (({}, 7), ({"SEED": "8"}, 8)):
        search = Search.load(source, variables=given)
        assert (search.experiment.random_seed, search.resolve([]).random_seed) == (seed, seed)
        assert search.variables == {"SEED": str(seed)}


def test_a_key_with_a_single_value_may_be_a_whole_number(search_file: SearchFile) -> None:
    space = {"model.encoder.hidden_sizes.0": {"low": 4, "high": 4}, "model.dropout": {"low": 0.5, "high": 0.5}}
    parameters = Search.load(search_file(space)).parameters
    assert [(each.dimension.ends(), each.whole) for each in parameters] == [(["4"], True), (["0.5"], False)]


def test_the_command_of_a_trial_trains_its_config(search_file: SearchFile) -> None:
    space = {"trainer.optimizer.lr": {"low": 0.001, "high": 0.1}}
    search = Search.load(search_file(space, changes={"trainer": {"optimizer": {"lr": 0.5}}}))
    values = {"trainer.optimizer.lr": 0.01}
    trial = TrialResult(number=1, state="finished", values=values, score=1.0, epochs=1, error=None, folder="1")
    words = shlex.split(SearchRecord.of(search, "elmo-tasks tune").train_command(trial))
    assert words[:2] == ["elmo-tasks", "train"]
    overrides = [word for option, word in itertools.pairwise(words) if option == "--set"]
    assert load_config(words[2], ExperimentConfig, overrides) == search.resolve(trial.overrides)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"model.dropuot": {"low": 0, "high": 0.5}}, "space: model.dropuot = 0: --set model.dropuot: unknown key. "
         "Did you mean 'dropout'?"),
        ({"model.dropout": {"low": 0, "high": 1.5}}, "space: model.dropout = 1.5: --set model.dropout: expected "),
        ({"trainer.num_epochs": {"low": 1.5, "high": 3.5}}, "space: trainer.num_epochs = 1.5: "),
        ({"trainer.num_epochs": {"low": 1, "high": 2, "step": 0.5}}, "space: trainer.num_epochs: step: got 0.5; "
         "expected a whole number"),
        ({"model.type": {"choices": ["crf_tagger", "crf"]}}, 'space: model.type = "crf": '),
        ({"model.encoder.hidden_sizes.7": {"low": 1, "high": 2}}, "is a list of 2: there is no index 7"),
        ({"train_data_path": {"choices": ["nowhere"]}}, "nowhere: no such file"),
        ({"trainer.precision": {"choices": ["float32", "bfloat16"]}}, "changes trainer.precision; expected the same"),
        ({"trainer.validation_metric": {"choices": ["+f1", "-loss"]}}, "changes trainer.validation_metric; "),
        ({"model.dropout": {"low": 0.5, "high": 0.1}}, "'low' is 0.5, which is more than 'high', 0.1"),
        ({"model.dropout": {"low": 0, "high": 0.1, "log": True}}, "'low' is 0; with 'log', expected a number above 0"),
        ({"model.dropout": {"low": 0.1, "high": 0.2, "log": True, "step": 0.1}}, "only one of 'log' and 'step'"),
        ({"model.dropout": {"low": 0, "high": 1e300, "step": 50}}, "from 0 to 1e+300 is not a number of steps of 50"),
        ({"model.dropout": {"low": 0, "high": 0.5, "step": 0.2}}, "from 0 to 0.5 is not a number of steps of 0.2"),
        ({"model.dropout": {"low": 0}}, "expected 'low' and 'high', or 'choices'"),
        ({"model.dropout": {"high": 0.5}}, "expected 'low' and 'high', or 'choices'"),
        ({"model.dropout": {"low": 0, "choices": [1]}}, "'choices' come without 'low'"),
        ({"model.dropout": {"high": 0, "choices": [1]}}, "'choices' come without 'low'"),
        ({"model.dropout": {"step": 1, "choices": [1]}}, "'choices' come without 'low'"),
        ({"model.dropout": {"log": True, "choices": [1]}}, "'choices' come without 'low'"),
        ({"model.dropout": {"low": 0, "high": 1, "step": 0}}, "space.model.dropout.step: "),
        ({"trainer.device": {"choices": ["cpu", "auto"]}}, "changes trainer.device; expected the same in all trials"),
        ({"model.dropout": {"choices": [0.5, 0.5]}}, "'choices' has 0.5 more than once"),
        ({"model.dropout": {"choices": []}}, "space.model.dropout.choices: "),
        ({"model.dropout": {"low": "0", "high": 1}}, "space.model.dropout.low: "),
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
    assert len(lines) == 4
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


def test_the_space_is_printed(search_file: SearchFile, capsys: pytest.CaptureFixture[str]) -> None:
    source = search_file({"trainer.optimizer.lr": {"low": 0.001, "high": 0.1, "log": True}})
    assert cli.main(["tune", source, "--dry-run", "--set", "trials=7"]) == 0
    said = capsys.readouterr().out
    assert "0.001 to 0.1, logarithmic" in said
    assert "7 trials of " in said
    assert "by the validation metric +f1" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged_searches())
def test_every_search_of_the_package_is_valid_anywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "runs" / "quick-data"
    write_sample_data(data, ALL_TASKS, sentences=(6, 2, 2))
    monkeypatch.setenv("ELMO_TASKS_DATA", str(data))
    assert len(Search.load(name).parameters) == 4
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
    assert len(Search.load(str(tmp_path / "search.json")).parameters) == 3


def test_without_optuna_the_extra_is_named(
    search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = search_file({"model.dropout": {"low": 0, "high": 0.5}})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["tune", source, "-s", str(tmp_path / "runs")]) == 2
    assert "which is not installed: pip install 'elmo-tasks[tune]'" in capsys.readouterr().err
    assert cli.main(["tune", source, "--dry-run"]) == 0
