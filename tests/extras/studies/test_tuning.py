"""Searches: every way in which a file can be wrong, and trials that are pruned, fail, are killed or go on."""

import contextlib
import errno
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.errors import ConfigError, ElmoTasksError, RunError, WriteError
from elmo_tasks.extras.samples import ALL_TASKS, write_sample_data
from elmo_tasks.extras.studies import find_search, packaged_searches, tuning
from elmo_tasks.extras.studies.study_runs import claimed
from elmo_tasks.extras.studies.tuning import Search, Tuning
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.training.callbacks import Progress

SearchFile = Callable[..., str]
RATE = "trainer.optimizer.lr"
SPACE = {
    RATE: {"low": 0.001, "high": 0.1, "log": True},
    "model.encoder.hidden_sizes.0": {"low": 4, "high": 8, "step": 2},
    "model.dropout": {"choices": [0.0, 0.3]},
}


@pytest.fixture
def search_file(config_file: Path) -> SearchFile:
    """Writes a search of three trials over a space, next to the experiment's config, and returns its path."""

    def write(space: dict[str, Any] = SPACE, **settings: Any) -> str:
        path = config_file.parent / "search.json"
        values = {"title": "A search", "config": config_file.name, "space": space, "trials": 3, **settings}
        path.write_text(json.dumps(values))
        return str(path)

    return write


# The file


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"model.dropuot": {"low": 0, "high": 0.5}}, "space: model.dropuot = 0: --set model.dropuot: unknown key. "
         "Did you mean 'dropout'?"),
        ({"model.dropout": {"low": 0, "high": 1.5}}, "space: model.dropout = 1.5: --set model.dropout: expected "),
        ({"trainer.num_epochs": {"low": 1, "high": 3}}, "space: trainer.num_epochs = 1.63"),
        ({"trainer.num_epochs": {"low": 1, "high": 2, "step": 0.5}}, "space: trainer.num_epochs = 1.5: "),
        ({"model.type": {"choices": ["crf_tagger", "crf"]}}, 'space: model.type = "crf": '),
        ({"train_data_path": {"choices": ["nowhere"]}}, "nowhere: no such file"),
        ({"model.dropout": {"low": 0.5, "high": 0.1}}, "space: model.dropout: `low <= high` must hold"),
        ({"model.dropout": {"low": 0, "high": 1e300, "step": 50}}, "space: model.dropout: "),
        ({"model.dropout": {"low": 0, "high": 0.5, "step": 0.2}}, "the range is not divisible by `step`"),
        ({"model.dropout": {"low": 0}}, "space: model.dropout: expected 'low' and 'high', perhaps with 'log' or"),
        ({"model.dropout": {"low": 0, "high": 0.1, "choices": [1]}}, "or only a list of 'choices'; got {"),
        ({"model.dropout": {"choices": "ab"}}, "or only a list of 'choices'; got {"),
        ({}, "space: "),
    ],
)  # fmt: skip
def test_problems_are_found_before_anything_runs(
    space: dict[str, Any], message: str, search_file: SearchFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tune", search_file(space), "-s", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "runs").exists()


def test_all_problems_are_named_at_once(search_file: SearchFile) -> None:
    space = {"model.dropout": {"low": -1, "high": 2}, "model.nothing": {"choices": [1]}}
    changes: dict[str, Any] = {"fold": {"number": 1, "of": 2}, "validation_data_path": None}
    for each in (changes, {"validation_data_path": None}):
        with pytest.raises(ConfigError) as caught:
            Search.load(search_file(space, changes=each))
        lines = str(caught.value).splitlines()
        assert len(lines) == 5
        assert "a search scores the validation data" in lines[0]


def test_variables_of_a_search_are_those_of_its_config(search_file: SearchFile, config_file: Path) -> None:
    config = config_file.with_name("experiment.jsonnet")
    config.write_text("(import 'experiment.json') { random_seed: std.parseInt(std.extVar('SEED')) }")
    source = search_file(SPACE, config=config.name, variables={"SEED": "7"})
    for given, seed in (({}, 7), ({"SEED": "8"}, 8)):
        search = Search.load(source, variables=given)
        assert (search.experiment.random_seed, search.resolve([]).random_seed) == (seed, seed)


def test_other_kinds_of_files_are_told_apart(
    search_file: SearchFile, config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = search_file()
    assert cli.main(["train", source, "--dry-run"]) == cli.main(["study", source]) == 2
    assert capsys.readouterr().err.count("use `elmo-tasks tune`") == 2
    assert cli.main(["tune", str(config_file)]) == 2
    assert "describes a task, not a search; use `elmo-tasks train`" in capsys.readouterr().err
    assert cli.main(["tune"]) == 2
    assert "no search given; give a file or a name of --list" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged_searches())
def test_every_search_of_the_package_is_valid_anywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "runs" / "quick-data"
    write_sample_data(data, ALL_TASKS, sentences=(6, 2, 2))
    monkeypatch.setenv("ELMO_TASKS_DATA", str(data))
    assert len(Search.load(name).space) == 4
    with pytest.raises(ConfigError, match=f"Did you mean '{name}'"):
        find_search(f"{name}s")
    text = (Path(__file__).parents[3] / "docs" / "studies.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    Path("search.json").write_text(block)
    assert len(Search.load("search.json").space) == 3


def test_without_optuna_the_extra_is_named(
    search_file: SearchFile, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["tune", search_file()]) == 2
    assert "which is not installed: pip install 'elmo-tasks[tune]'" in capsys.readouterr().err


# The command


def test_the_space_says_which_values_each_key_can_have(
    search_file: SearchFile, printed: Callable[[], tuple[str, list[list[str]]]]
) -> None:
    assert cli.main(["tune", search_file(title="The title"), "--dry-run"]) == 0
    text, rows = printed()
    assert text.startswith("The title\n")
    assert rows == [["key", "values"], *([key, json.dumps(values)] for key, values in SPACE.items())]
    assert text.splitlines()[-1].startswith("3 trials of ")


@pytest.mark.parametrize(("given", "folder"), [([], "runs/studies/search"), (["-s", "a folder"], "a folder")])
def test_the_folder_and_the_changes_of_a_search(
    given: list[str], folder: str, search_file: SearchFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["tune", search_file(), *given, "--set", "trials=1", "--set", "changes.random_seed=3"]) == 0
    assert json.loads(Path(folder, "best.json").read_text())["random_seed"] == 3
    assert [each.name for each in Path(folder).glob("trial_*")] == ["trial_0"]


# The trials


class FakeTraining:
    """Stands for `train`: each epoch scores the trial's learning rate times the epoch.

    Arguments:
        ends: by the name of a trial's folder, the error that it ends with, after its first epoch.
    """

    def __init__(self, ends: dict[str, BaseException]) -> None:
        self.ends = ends
        self.calls: dict[str, bool] = {}  # by the folder, whether a run was resumed

    def __call__(self, config: dict[str, Any], folder: Path, *, resume: bool, callbacks: Any) -> dict[str, Any]:
        assert config["evaluate_on_test"] is False
        self.calls[folder.name] = resume
        folder.mkdir(exist_ok=True)
        RunFolder(folder).config.touch()
        rate = config["trainer"]["optimizer"]["lr"]
        for epoch in (1, 2, 3):
            record = {"epoch": epoch, "validation": {"f1": rate * epoch, "loss": -rate * epoch}}
            callbacks[0].on_epoch(Progress(), record)
            if error := self.ends.get(folder.name):
                raise error
        return {"best": record}


Tune = Callable[..., tuple[list[FrozenTrial], dict[str, bool]]]


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tune:
    """A function that trains a search in a folder, and returns its trials, and which runs were trained and resumed."""

    def run(source: str, folder: str = "s", **ends: BaseException) -> tuple[list[FrozenTrial], dict[str, bool]]:
        training = FakeTraining(ends)
        monkeypatch.setattr(tuning, "train", training)
        search = Tuning(tmp_path / folder, Search.load(source))
        search.train()
        return search.study.trials, training.calls

    return run


def results(trials: list[FrozenTrial]) -> list[Any]:
    return [(each.state, each.params, each.value, each.intermediate_values) for each in trials]


@pytest.mark.parametrize("metric", ["+f1", "-loss"])
def test_values_are_drawn_as_the_space_says_and_trials_below_the_median_are_stopped(
    metric: str, search_file: SearchFile, tune: Tune
) -> None:
    changes = {"trainer": {"validation_metric": metric}}
    found, _ = tune(search_file(trials=8, changes=changes, pruning={"startup_trials": 2, "warmup_epochs": 1}))
    sign = 1 if metric == "+f1" else -1
    pruned = [each for each in found if each.state is TrialState.PRUNED]
    assert 0 < len(pruned) < 6
    distributions = optuna.distributions
    for each in found:
        assert each.distributions == {
            RATE: distributions.FloatDistribution(0.001, 0.1, log=True),
            "model.encoder.hidden_sizes.0": distributions.FloatDistribution(4, 8, step=2),
            "model.dropout": distributions.CategoricalDistribution(("0.0", "0.3")),
        }
        epochs = 2 if each in pruned else 3
        expected = {epoch: pytest.approx(sign * each.params[RATE] * epoch) for epoch in range(1, epochs + 1)}
        assert each.intermediate_values == expected
        if each in pruned:
            earlier = [other for other in found[: each.number] if other.state is TrialState.COMPLETE]
            rates = sorted(other.params[RATE] for other in earlier)
            assert len(earlier) >= 2
            assert each.params[RATE] < rates[len(rates) // 2]
    whole, _ = tune(search_file(trials=3, pruning=None), "whole")
    assert {each.state for each in whole} == {TrialState.COMPLETE}


def test_the_last_epoch_stops_no_trial_and_repeated_epochs_are_reported_once(search_file: SearchFile) -> None:
    trainer = Search.load(search_file(trials=1)).experiment.trainer  # three epochs
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.ThresholdPruner(lower=5))
    trial = study.ask()

    def report(epoch: int, value: float) -> None:
        tuning.Reports(trial, trainer).on_epoch(Progress(), {"epoch": epoch, "validation": {"f1": value}})

    report(1, 8.0)
    report(1, 1.0)  # after a resumption, which would give the same value
    assert study.trials[0].intermediate_values == {1: 8.0}
    with pytest.raises(optuna.TrialPruned):
        report(2, 1.0)
    report(3, 1.0)


def test_an_interrupted_search_ends_like_one_that_was_not(search_file: SearchFile, tune: Tune) -> None:
    source = search_file(trials=13, seed=2**31 - 1)
    whole, _ = tune(source, "whole")
    assert len({each.params[RATE] for each in whole}) == 13
    with pytest.raises(KeyboardInterrupt):
        tune(source, trial_3=KeyboardInterrupt())
    with pytest.raises(WriteError):  # the disk is full: this trial is not to blame
        tune(source, trial_11=WriteError("a", "full"))
    parts, trained = tune(source)
    assert results(parts) == results(whole)
    assert trained == {"trial_11": True, "trial_12": False}
    more, trained = tune(search_file(trials=14, title="Longer", text="More.", seed=2**31 - 1))
    assert (results(more[:13]), trained) == (results(whole), {"trial_13": False})


def test_a_trial_that_another_process_trains_is_waited_for(
    search_file: SearchFile, tmp_path: Path, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = search_file(trials=3)
    whole, _ = tune(source, "whole")
    with pytest.raises(KeyboardInterrupt):
        tune(source, trial_1=KeyboardInterrupt())
    with contextlib.ExitStack() as other:
        assert other.enter_context(claimed(tmp_path / "s" / ".claims" / "trial_1"))
        monkeypatch.setattr("time.sleep", lambda seconds: other.close())
        found, trained = tune(source)
    assert list(trained.items()) == [("trial_2", False), ("trial_1", True)]
    assert results(found) == results(whole)


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
        journal.write_bytes(b"".join(lines[:kept]) + b'{"op_code": 4, "wor')  # it was killed in the middle of a line
        found, _ = tune(source)
        assert [(each.params[RATE], each.params.keys()) for each in found] == expected


def test_a_failed_trial_does_not_end_the_search(search_file: SearchFile, tmp_path: Path, tune: Tune) -> None:
    ends = {"trial_0": ElmoTasksError("the loss is nan"), "trial_2": RuntimeError("out of\nmemory")}
    source = search_file(trials=4)
    found, trained = tune(source, **ends)
    assert [each.state is TrialState.FAIL for each in found] == [True, False, True, False]
    assert [each.user_attrs.get("error") for each in found] == ["the loss is nan", None, "out of memory", None]
    assert list(trained) == ["trial_0", "trial_1", "trial_2", "trial_3"]
    assert tune(source)[1] == {}
    tune(search_file(trials=1), "bad", trial_0=ElmoTasksError("all is lost"))
    with pytest.raises(RunError, match=r"bad: no trial has finished\n  all is lost"):
        Tuning(tmp_path / "bad", Search.load(search_file(trials=1))).write_best()


def test_a_folder_of_another_search_is_refused(search_file: SearchFile, tune: Tune) -> None:
    tune(search_file(trials=1))
    for other in ({"seed": 2}, {"changes": {"trainer": {"num_epochs": 2}}}):
        with pytest.raises(RunError, match="has the trials of another search; -s names another folder"):
            tune(search_file(trials=1, **other))


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
    assert ([each.state for each in found], list(trained)) == ([TrialState.COMPLETE] * 2, ["trial_1"])


def test_the_table_shows_the_best_trials_first(search_file: SearchFile, tmp_path: Path, tune: Tune) -> None:
    source = search_file(trials=12, changes={"trainer": {"validation_metric": "-loss"}}, pruning=None)
    found, _ = tune(source)
    search = Tuning(tmp_path / "s", Search.load(source))
    table, training = search.write_best()
    ranked = sorted(found, key=lambda trial: trial.params[RATE], reverse=True)
    assert table.title == "The best of 12 trials"
    assert table.columns == ["trial", "optimizer.lr", "hidden_sizes.0", "model.dropout", "loss"]
    assert [row[0] for row in table.rows] == [str(each.number) for each in ranked[:10]]
    best = load_config(file := tmp_path / "s" / "best.json", ExperimentConfig)
    assert best.trainer.optimizer.lr == ranked[0].params[RATE]
    assert training == f"elmo-tasks train {file}"


@pytest.mark.slow
def test_a_search_trains_and_its_best_config_gives_the_same_score(
    search_file: SearchFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a?b #c"
    source = search_file(trials=3, changes={"trainer": {"num_epochs": 1}})
    assert cli.main(["tune", source, "-s", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "The best of 3 trials" in said
    metrics = [json.loads((folder / f"trial_{number}" / "metrics.json").read_text()) for number in range(3)]
    assert not any("test" in each for each in metrics)

    assert cli.main(["train", str(folder / "best.json"), "-s", str(tmp_path / "best")]) == 0
    best = json.loads((tmp_path / "best" / "metrics.json").read_text())
    assert best["best"]["validation"]["f1"] == max(each["best"]["validation"]["f1"] for each in metrics)
    assert "test" in best

    assert shlex.join(["elmo-tasks", "train", str(folder / "best.json")]) in said.splitlines()
    assert cli.main(["report", str(folder)]) == 2
    assert "calling its `elmo-tasks tune` again prints its best trials" in capsys.readouterr().err
