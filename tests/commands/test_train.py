import json
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import jsonschema
import pytest
from accelerate import PartialState

import elmo_tasks.predictors
import elmo_tasks.runs.archive
import elmo_tasks.runs.evaluate
import elmo_tasks.runs.train
from elmo_tasks import cli
from elmo_tasks.commands import train as train_command
from elmo_tasks.config import load_config, to_json
from elmo_tasks.metrics.confusion import ConfusionTable, label_scores
from elmo_tasks.runs.experiment_config import ExperimentConfig
from tests.hooked import hooked

Printed = Callable[[], tuple[str, list[list[str]]]]


def test_train_prints_the_scores_of_a_run_or_those_of_seeds(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setattr(train_command, "_say_what_is_next", Mock())
    results = {"best": {"epoch": 3, "validation": {"f1": 91.2345, "f1/PER": 95.0}}, "test": {"f1": 90.0}}
    monkeypatch.setattr(elmo_tasks.runs.train, "train", Mock(return_value=results))
    assert cli.main(["train", "configs/own.jsonnet"]) == 0
    text, rows = printed()
    assert all(f"{title}\n" in text for title in ("validation, epoch 3", "validation, epoch 3, in detail", "test"))
    head = ["metric", "value"]
    assert rows == [head, ["f1", "91.23"], ["", "f1"], ["PER", "95.00"], head, ["f1", "90.00"]]
    summary = {
        "seeds": [1, 2],
        "mean": {"best/epoch": 2.5, "best/validation/f1": 91.0, "test/f1": 90.0, "test/f1/PER": 89.0},
        "std": {"best/epoch": 0.5, "best/validation/f1": 0.25, "test/f1": 0.75, "test/f1/PER": 0.0},
    }
    with hooked("repeated_training", "seeds", Mock(return_value=summary)):
        assert cli.main(["train", "c.jsonnet", "--seeds", "1,2"]) == 0
    text, rows = printed()
    assert all(f"{title}, 2 seeds\n" in text for title in ("validation", "test"))
    head = ["metric", "mean", "std"]
    assert rows == [head, ["f1", "91.00", "0.25"], head, ["f1", "90.00", "0.75"]]


def test_train_says_what_to_type_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(elmo_tasks.runs.train, "train", Mock(return_value={"best": {"epoch": 1, "validation": {}}}))
    monkeypatch.chdir(tmp_path)

    def write(folder: str, name: str, **paths: str | None) -> None:
        config = to_json(load_config(name, ExperimentConfig)) | paths
        Path(folder, "config.json").write_text(json.dumps(config))

    for folder in ("a run", "a run/seed_2"):
        Path(folder).mkdir()
        write(folder, "ner_conll03", test_data_path=None, validation_data_path="the dev.txt")
    assert cli.main(["train", "c.json", "-s", "a run", "--include-package", "json"]) == 0
    said = [line.partition("INFO ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "the run is in a run; next steps:",
        "  elmo-tasks evaluate 'a run' 'the dev.txt' --include-package json",
        "  elmo-tasks predict 'a run' - --include-package json",
        "  elmo-tasks plot 'a run' --output 'a run.svg' --include-package json",
    ]
    for name, inputs in (("cpu/srl_ewt", "- --predicates RUN"), ("snli", "inputs.jsonl"), ("squad", "inputs.jsonl")):
        write("a run", name, test_data_path="t.txt")
        assert cli.main(["train", "c.json", "-s", "a run"]) == 0
        error = capsys.readouterr().err
        assert "elmo-tasks evaluate 'a run' t.txt\n" in error
        assert f"elmo-tasks predict 'a run' {inputs}\n" in error
    with hooked("repeated_training", "seeds", Mock(return_value={"seeds": [2], "mean": {}, "std": {}})):
        assert cli.main(["train", "c.json", "-s", "a run", "--seeds", "2,3"]) == 0
        error = capsys.readouterr().err
        assert "the run is in a run/seed_2" in error
        assert "only; for" not in error
        assert cli.main(["train", "c.json", "-s", "a run", "--seeds", "2"]) == 0
        assert "INFO seed 2 only; for 2 seeds use --seeds 1-2\n" in capsys.readouterr().err
    assert cli.main(["train", "c.json", "-s", "a run", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_of_several_processes_only_the_main_one_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        elmo_tasks.runs.train, "train", Mock(return_value={"best": {"epoch": 1, "validation": {"f1": 91.0}}})
    )
    monkeypatch.setattr(PartialState, "is_main_process", False)
    assert cli.main(["train", "c.jsonnet"]) == 0
    assert capsys.readouterr().out == ""


def test_evaluate_prints_support_and_confusions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    confusion: ConfusionTable = {"labels": ["O", "LOC"], "counts": [[7, 0], [1, 12]]}
    metrics = {"f1": 92.22, "f1/LOC": 93.41, "support/LOC": 13, "confusion": confusion}
    metrics |= {"label_scores": label_scores(confusion), "learned": {"examples": 3}}
    monkeypatch.setattr(elmo_tasks.runs.evaluate, "evaluate", Mock(side_effect=lambda *_, **__: dict(metrics)))
    assert cli.main(["evaluate", "run", "data", "--confusion"]) == 0
    text, rows = printed()
    assert rows == [
        *(["metric", "value"], ["f1", "92.22"], ["", "f1", "support"], ["LOC", "93.41", "13"]),
        *(["", "O", "LOC"], ["O", "7", "·"], ["LOC", "1", "12"]),
        ["label", "precision", "recall", "f1", "number"],
        *(["O", "87.50", "100.00", "93.33", "7"], ["LOC", "100.00", "92.31", "96.00", "13"]),
        ["macro F1", "", "", "94.67", ""],
    ]
    assert text.endswith("\naccuracy of always giving the most frequent label: 65.00\n")
    target = tmp_path / "metrics.json"
    assert cli.main(["evaluate", "run", "data", "--confusion", "--json", "--output", str(target)]) == 0
    assert json.loads(printed()[0]) == json.loads(target.read_text()) == metrics
    metrics = {"f1": 92.22, "learned": {"examples": 3, "f1": 99.0}}
    assert cli.main(["evaluate", "run", "one", "two"]) == 0
    text, rows = printed()
    assert "one two, examples that were learned from\n" in text
    assert rows == [["metric", "value"], ["f1", "92.22"], ["metric", "value"], ["examples", "3"], ["f1", "99.00"]]


@pytest.mark.parametrize("change", [["--set", "random_seed=1"], ["--ext-var", "A=b"]])
def test_a_copy_of_a_config_has_no_changes(
    change: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["config", "ner_conll03", "--copy", str(tmp_path / "x.jsonnet"), *change]) == 2
    assert "--copy copies the file unchanged; expected no --set or --ext-var" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_config_s_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--schema"]) == 0
    validator = jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out))
    assert validator.is_valid({"corpus": {"paths": ["text.txt"]}})
    assert not validator.is_valid({"corpus": {"paths": []}})
    assert not validator.is_valid({"train_data_path": "train.txt"})  # the other keys are missing


def test_config_recognizes_a_pretraining_by_its_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.json").write_text('{"corpus": {"paths": ["text.txt"]}}')
    assert cli.main(["config", "own.json", "--set", "dropout=0.2"]) == 0
    output = capsys.readouterr().out
    assert all(line in output for line in ('paths: ["text.txt"]', "dropout: 0.2,", "unroll_steps: 20,  // default"))
    Path("own.json").write_text('{"corpus": {"path": ["text.txt"]}}')
    assert cli.main(["config", "own.json"]) == 2
    assert "Did you mean 'paths'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("config", "no config given"),
        ("archive run run.zip", "run.zip: an archive is a .tar.gz file"),
        ("predict run in.txt", "start it without torchrun"),
        ("tune mine.json", "tune runs in one process"),
        ("study benchmarks", "study runs in one process"),
        ("compare a.jsonl", "compare runs in one process; start it without torchrun"),
        ("errors a.jsonl", "errors runs in one process; start it without torchrun"),
    ],
)
def test_what_commands_cannot_do(
    line: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")  # as torchrun sets it
    assert cli.main(line.split()) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "config", "message"),
    [
        ("train", "bilm/tiny", "describes the pretraining of a biLM, not a task; use `elmo-tasks pretrain`"),
        ("pretrain", "ner_conll03", "describes a task, not the pretraining of a biLM; use `elmo-tasks train`"),
        ("train", "{folder}", "{folder}: a folder; expected a Jsonnet or JSON file"),
        ("train", "{folder}/run", "the folder of a run; its config is {folder}/run/config.json"),
    ],
)
def test_a_config_of_another_kind_says_what_it_is(
    command: str,
    config: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ELMO_TASKS_TEXT", "text.txt")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").touch()
    assert cli.main([command, config.format(folder=tmp_path), "-s", str(tmp_path / "new")]) == 2
    assert message.format(folder=tmp_path) in capsys.readouterr().err


def test_several_runs_are_an_ensemble_on_several_files(
    short_run: Path, sample_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(short_run, tmp_path / "copy")
    data = [str(sample_folder / "ner_conll2003" / name) for name in ("eng.testa", "eng.testb")]
    metrics = []
    for runs in ([str(short_run)], [str(short_run), str(tmp_path / "copy")]):
        assert cli.main(["evaluate", *runs, *data, "--json"]) == 0
        metrics.append(json.loads(capsys.readouterr().out))
    assert metrics[0] == metrics[1]
