from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
from accelerate import PartialState

import elmo_tasks.experiment
from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError

DEFAULT_FOLDERS = {
    "own.json": "runs/own",
    "elsewhere/own.v2.jsonnet": "runs/own.v2",
    "configs/sst5.jsonnet": "runs/sst5",
    "/configs/home/configs/cpu/baselines/sst5.jsonnet": "runs/cpu/baselines/sst5",
}


def test_train_passes_on_its_arguments(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    train = Mock(
        return_value={"best": {"epoch": 3, "validation": {"f1": 91.2345, "f1/PER": 95.0}}, "test": {"f1": 90.0}}
    )
    monkeypatch.setattr(elmo_tasks.experiment, "train", train)
    assert cli.main(["train", "configs/own.jsonnet"]) == 0
    assert train.call_args.args == ("configs/own.jsonnet", Path("runs/own"))
    assert train.call_args.kwargs == {
        "overrides": [],
        "variables": {},
        "resume": False,
        "force": False,
        "self_contained": False,
    }
    output = capsys.readouterr().out
    assert all(word in output for word in ("epoch 3", "test", "91.23", "90.00", "PER", "95.00"))
    for config, folder in DEFAULT_FOLDERS.items():
        assert cli.main(["train", config]) == 0
        assert train.call_args.args == (config, Path(folder))
    capsys.readouterr()

    summary = {
        "seeds": [1, 2],
        "mean": {"best/epoch": 2.5, "best/validation/f1": 91.0, "test/f1": 90.0, "test/f1/PER": 89.0},
        "std": {"best/epoch": 0.5, "best/validation/f1": 0.25, "test/f1": 0.75, "test/f1/PER": 0.0},
    }
    train_seeds = Mock(return_value=summary)
    monkeypatch.setattr(elmo_tasks.experiment, "train_seeds", train_seeds)
    arguments = "train c.jsonnet -s out --set a.b=1 --set c=d --ext-var N=V=W --seeds 1,2 --resume --self-contained"
    assert cli.main(arguments.split()) == 0
    assert train_seeds.call_args.args == ("c.jsonnet", "out", (1, 2))
    assert train_seeds.call_args.kwargs == {
        "overrides": ["a.b=1", "c=d"],
        "variables": {"N": "V=W"},
        "resume": True,
        "force": False,
        "self_contained": True,
    }
    output = capsys.readouterr().out
    assert all(word in output for word in ("validation, 2 seeds", "91.00", "0.25", "test, 2 seeds", "90.00", "0.75"))
    assert "89.00" not in output


def test_of_several_processes_only_the_main_one_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        elmo_tasks.experiment, "train", Mock(return_value={"best": {"epoch": 1, "validation": {"f1": 91.0}}})
    )
    monkeypatch.setattr(PartialState, "is_main_process", False)
    assert cli.main(["train", "c.jsonnet"]) == 0
    assert capsys.readouterr().out == ""


def test_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = {"f1": 92.22, "f1/LOC": 93.41, "loss": 0.5}
    evaluate = Mock(return_value=metrics)
    monkeypatch.setattr(elmo_tasks.experiment, "evaluate", evaluate)
    target = tmp_path / "metrics.json"
    arguments = ["--json", "--output", str(target), "--device", "cpu", "--set", "a=b", "--batch-tokens", "99"]
    assert cli.main(["evaluate", "run", "data", "--predictions", "p.jsonl", *arguments]) == 0
    assert evaluate.call_args.args == ("run", "data")
    assert evaluate.call_args.kwargs == {
        "predictions": "p.jsonl",
        "batch_tokens": 99,
        "overrides": ["trainer.device=cpu", "a=b"],
    }
    assert json.loads(capsys.readouterr().out) == json.loads(target.read_text()) == metrics

    assert cli.main(["evaluate", "run", "data"]) == 0
    assert evaluate.call_args.kwargs == {"predictions": None, "batch_tokens": None, "overrides": []}
    output = capsys.readouterr().out
    assert all(word in output for word in ("f1", "92.22", "LOC", "93.41", "loss", "0.50"))


class EchoPredictor:
    def predict(self, inputs: Iterable[Mapping[str, Any]], *, source: str) -> Iterator[dict[str, Any]]:
        for fields in inputs:
            if fields["text"] == "bad":
                raise ElmoTasksError("bad input")
            yield {"said": fields["text"], "source": source}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Mock:
    load = Mock(return_value=EchoPredictor())
    monkeypatch.setattr(elmo_tasks.experiment, "load_predictor", load)
    return load


def test_predict_prints_json_lines(tmp_path: Path, load: Mock, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt"
    source.write_text("one\nzwölf\n", encoding="utf-8")
    assert cli.main(["predict", "run", str(source), "--batch-tokens", "99"]) == 0
    expected = [{"said": "one", "source": str(source)}, {"said": "zwölf", "source": str(source)}]
    output = capsys.readouterr().out
    assert "zwölf" in output
    assert [json.loads(line) for line in output.splitlines()] == expected
    assert load.call_args.args == ("run",)
    assert load.call_args.kwargs == {"overrides": [], "batch_tokens": 99, "predicates": None}

    target = tmp_path / "out.jsonl"
    assert cli.main(["predict", "run", str(source), "--output", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == output
    assert capsys.readouterr().out == ""

    assert cli.main(["predict", "run", str(source), "--predicates", "tagger", "--set", "a=b"]) == 0
    assert load.call_args.kwargs["overrides"] == ["a=b"]
    assert isinstance(load.call_args.kwargs["predicates"], EchoPredictor)


def test_the_device_also_applies_to_the_tagger_of_predicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, list[str]]] = []

    def load(path: str, *, overrides: list[str], **_: Any) -> EchoPredictor:
        loaded.append((path, overrides))
        return EchoPredictor()

    monkeypatch.setattr(elmo_tasks.experiment, "load_predictor", load)
    source = tmp_path / "in.txt"
    source.write_text("one\n")
    arguments = ["--predicates", "tagger", "--device", "cpu", "--set", "a=b"]
    assert cli.main(["predict", "run", str(source), *arguments]) == 0
    assert loaded == [("tagger", ["trainer.device=cpu"]), ("run", ["trainer.device=cpu", "a=b"])]


@pytest.mark.usefixtures("load")
def test_a_failed_prediction_leaves_no_output_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt"
    source.write_text("fine\nbad\n")
    assert cli.main(["predict", "run", str(source), "--output", str(tmp_path / "out.jsonl")]) == 2
    assert capsys.readouterr().err == "error: bad input\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_config_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config"]) == 2
    assert "no config given" in capsys.readouterr().err


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


@pytest.mark.parametrize("command", [["config"], ["train", "--dry-run"]])
def test_a_config_s_problems_are_printed(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.jsonnet").write_text("{ random_sead: 1 }")
    assert cli.main([*command, "own.jsonnet"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "own.jsonnet" in captured.err
    assert "random_sead" in captured.err
    assert [path.name for path in tmp_path.iterdir()] == ["own.jsonnet"]


def test_archive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    archive = Mock()
    monkeypatch.setattr(elmo_tasks.experiment, "archive", archive)
    assert cli.main(["archive", "run", "run.tar.gz"]) == 0
    assert (archive.call_args.args, archive.call_args.kwargs) == (("run", "run.tar.gz"), {"self_contained": True})
    assert capsys.readouterr().out == "run.tar.gz\n"
    assert cli.main(["archive", "run", "run.tar.gz", "--without-bilm"]) == 0
    assert archive.call_args.kwargs == {"self_contained": False}
