from __future__ import annotations

import itertools
import json
import os
import pty
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
from accelerate import PartialState
from rich.progress import Progress

import elmo_tasks.experiment
import elmo_tasks.repeated_runs
import elmo_tasks.trained_runs
from elmo_tasks import cli
from elmo_tasks.commands import experiments
from elmo_tasks.errors import DataError
from elmo_tasks.metrics.coreference import CoreferenceScores

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
    monkeypatch.setattr(experiments, "_say_what_is_next", Mock())
    assert cli.main(["train", "configs/own.jsonnet"]) == 0
    assert train.call_args.args == ("configs/own.jsonnet", Path("runs/own"))
    assert train.call_args.kwargs == {
        "overrides": [],
        "variables": {},
        "from_run": None,
        "resume": False,
        "force": False,
        "self_contained": False,
        "predictions": [],
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
    monkeypatch.setattr(elmo_tasks.repeated_runs, "train_seeds", train_seeds)
    arguments = "train c.jsonnet -s out --set a.b=1 --set c=d --ext-var N=V=W --seeds 1,2 --resume --self-contained"
    assert cli.main([*arguments.split(), "--from", "old", "--predictions", "test"]) == 0
    assert train_seeds.call_args.args == ("c.jsonnet", "out", (1, 2))
    assert train_seeds.call_args.kwargs == {
        "overrides": ["a.b=1", "c=d"],
        "variables": {"N": "V=W"},
        "from_run": "old",
        "resume": True,
        "force": False,
        "self_contained": True,
        "predictions": ["test"],
    }
    output = capsys.readouterr().out
    assert all(word in output for word in ("validation, 2 seeds", "91.00", "0.25", "test, 2 seeds", "90.00", "0.75"))
    assert "89.00" not in output


def test_train_prints_the_pooled_score_of_folds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = {"folds": 5, "pooled": {"f1": 87.654}, "mean": {"test/f1": 87.0}, "std": {"test/f1": 1.5}}
    train_folds = Mock(return_value=summary)
    monkeypatch.setattr(elmo_tasks.repeated_runs, "train_folds", train_folds)
    said = Mock()
    monkeypatch.setattr(experiments, "_say_what_is_next", said)
    assert cli.main(["train", "c.jsonnet", "-s", "out", "--folds", "5"]) == 0
    assert train_folds.call_args.args == ("c.jsonnet", "out", 5)
    assert said.call_args.args[0] == Path("out/fold_1")
    output = capsys.readouterr().out
    assert all(text in output for text in ("all 5 folds together", "87.65", "test, 5 folds", "87.00", "1.50"))
    for wrong in (["--folds", "1"], ["--folds", "5", "--seeds", "1"]):
        with pytest.raises(SystemExit):
            cli.main(["train", "c.jsonnet", *wrong])


def test_train_says_what_to_type_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(elmo_tasks.experiment, "train", Mock(return_value={"best": {"epoch": 1, "validation": {}}}))
    monkeypatch.chdir(tmp_path)
    for folder in ("a run", "a run/seed_2"):
        Path(folder).mkdir()
        Path(folder, "config.json").write_text('{"test_data_path": null, "validation_data_path": "the dev.txt"}')
    assert cli.main(["train", "c.json", "-s", "a run", "--include-package", "json"]) == 0
    said = capsys.readouterr().err
    assert "elmo-tasks evaluate 'a run' 'the dev.txt' --include-package json\n" in said
    assert "elmo-tasks predict 'a run' - --include-package json\n" in said
    Path("a run/config.json").write_text('{"test_data_path": "t.txt", "validation_data_path": "dev.txt"}')
    assert cli.main(["train", "c.json", "-s", "a run"]) == 0
    assert "elmo-tasks evaluate 'a run' t.txt\n" in capsys.readouterr().err
    monkeypatch.setattr(
        elmo_tasks.repeated_runs, "train_seeds", Mock(return_value={"seeds": [2], "mean": {}, "std": {}})
    )
    assert cli.main(["train", "c.json", "-s", "a run", "--seeds", "2,3"]) == 0
    assert "the run is in a run/seed_2" in capsys.readouterr().err
    assert cli.main(["train", "c.json", "-s", "a run", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


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
    monkeypatch.setattr(elmo_tasks.trained_runs, "evaluate", evaluate)
    target = tmp_path / "metrics.json"
    arguments = ["--json", "--output", str(target), "--device", "cpu", "--set", "a=b", "--batch-tokens", "99"]
    assert cli.main(["evaluate", "run", "data", "--predictions", "p.jsonl", *arguments]) == 0
    assert evaluate.call_args.args == ("run", "data")
    assert evaluate.call_args.kwargs == {
        "predictions": "p.jsonl",
        "confusion": False,
        "batch_tokens": 99,
        "overrides": ["trainer.device=cpu", "a=b"],
    }
    assert json.loads(capsys.readouterr().out) == json.loads(target.read_text()) == metrics

    assert cli.main(["evaluate", "run", "data"]) == 0
    assert evaluate.call_args.kwargs == {"predictions": None, "confusion": False, "batch_tokens": None, "overrides": []}
    assert lines_of_tables(capsys.readouterr().out) == ["f1 92.22", "loss 0.50", "LOC 93.41"]


def lines_of_tables(output: str) -> list[str]:
    """The lines of printed tables, without their frames and titles."""
    return [" ".join(line.replace("│", " ").split()) for line in output.splitlines() if line.startswith("│")]


def test_evaluate_prints_support_and_confusions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    confusion = {"labels": ["O", "LOC"], "counts": [[7, 0], [1, 12]]}
    metrics = {"f1": 92.22, "f1/LOC": 93.41, "support/LOC": 13, "confusion": confusion}
    monkeypatch.setattr(elmo_tasks.trained_runs, "evaluate", Mock(side_effect=lambda *_, **__: dict(metrics)))
    assert cli.main(["evaluate", "run", "data", "--confusion"]) == 0
    output = capsys.readouterr().out
    assert lines_of_tables(output) == ["f1 92.22", "LOC 93.41 13", "O 7 ·", "LOC 1 12"]
    assert "support" in output
    assert cli.main(["evaluate", "run", "data", "--confusion", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == metrics


def test_evaluate_prints_every_measure_of_coreference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = CoreferenceScores()
    scores.update([{"clusters": [[[0, 0], [1, 1]]]}], [{"clusters": [[[0, 0], [1, 1]]]}])
    monkeypatch.setattr(elmo_tasks.trained_runs, "evaluate", Mock(return_value=scores.compute()))
    assert cli.main(["evaluate", "run", "data"]) == 0
    overall, *measures = lines_of_tables(capsys.readouterr().out)
    assert overall == "conll_f1 100.00"
    names = ("mentions", "muc", "b_cubed", "ceaf_e", "ceaf_m", "blanc")
    assert measures == [f"{name} 100.00 100.00 100.00" for name in names]


class EchoPredictor:
    task = SimpleNamespace()  # has no description of its own

    def warm_up(self) -> None:
        pass

    def predict(self, inputs: Iterable[Mapping[str, Any]], *, source: str, **_: Any) -> Iterator[dict[str, Any]]:
        for fields in inputs:
            if fields["text"] == "bad":
                raise DataError(source, "bad input")
            yield {"said": fields["text"], "source": source}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Mock:
    load = Mock(return_value=EchoPredictor())
    monkeypatch.setattr(elmo_tasks.trained_runs, "load_predictor", load)
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

    for option, tokenizer in (
        ("--tokenized", '{"type": "whitespace"}'),
        ("--tokenizer=unicode", '{"type": "unicode"}'),
        ('--tokenizer={"type": "regex", "pattern": "a"}', '{"type": "regex", "pattern": "a"}'),
    ):
        assert cli.main(["predict", "run", str(source), option, "--output", str(tmp_path / "none"), "--force"]) == 0
        assert load.call_args.kwargs["overrides"] == [f"dataset_reader.tokenizer={tokenizer}"]

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

    monkeypatch.setattr(elmo_tasks.trained_runs, "load_predictor", load)
    source = tmp_path / "in.txt"
    source.write_text("one\n")
    arguments = ["--predicates", "tagger", "--device", "cpu", "--set", "a=b"]
    assert cli.main(["predict", "run", str(source), *arguments]) == 0
    assert loaded == [("tagger", ["trainer.device=cpu"]), ("run", ["trainer.device=cpu", "a=b"])]


@pytest.mark.usefixtures("load")
def test_predict_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, page, lines = tmp_path / "in.txt", tmp_path / "page.html", tmp_path / "out.jsonl"
    source.write_text("<one>\nzwölf\n", encoding="utf-8")
    assert cli.main(["predict", "run", str(source), "--html", str(page)]) == 0
    assert [path.name for path in tmp_path.iterdir() if path != source] == ["page.html"]
    text = page.read_text(encoding="utf-8")
    assert text.count("<section>") == 2
    assert all(word in text for word in ("&lt;one&gt;", "zwölf", "</html>"))
    both = ["predict", "run", str(source), "--html", str(page), "--output", str(lines)]
    assert cli.main(both) == 2
    assert capsys.readouterr().err == f"error: {page}: the file exists; --force replaces it\n"
    assert cli.main([*both, "--force"]) == 0
    assert (page.read_text(encoding="utf-8"), len(lines.read_text().splitlines())) == (text, 2)
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("load")
def test_predict_shows_its_progress_where_it_does_not_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[bool] = []

    def noting(*, visible: bool) -> Progress:
        shown.append(visible)
        return Progress(disable=True)

    monkeypatch.setattr("elmo_tasks.progress.progress_bar", noting)
    source = tmp_path / "in.txt"
    source.write_text("one\n")
    for option in ([], ["--output", str(tmp_path / "out.jsonl")], ["--html", str(tmp_path / "page.html")]):
        assert cli.main(["predict", "run", str(source), *option]) == 0
    assert shown == [False, True, True]


@pytest.mark.usefixtures("load")
def test_predict_on_a_terminal_is_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("[red]one\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "300")
    assert cli.main(["predict", "run", str(source)]) == 0
    assert capsys.readouterr().out == f"said: [red]one\nsource: {source}\n\n"
    assert cli.main(["predict", "run", str(source), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"said": "[red]one", "source": str(source)}


@pytest.mark.usefixtures("load")
def test_who_types_is_prompted_and_may_make_mistakes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, keyboard = pty.openpty()
    with os.fdopen(keyboard) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(terminal, b"bad\nfine\n\x04")
        assert cli.main(["predict", "run", "-"]) == 0
    os.close(terminal)
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"said": "fine", "source": "standard input"}
    assert captured.err.splitlines()[1:] == ["error: standard input: bad input"]


def test_predict_answers_while_the_pipe_is_open(load: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    (read, question), (answer, write) = os.pipe(), os.pipe()
    with os.fdopen(read) as stdin, os.fdopen(write, "w") as stdout, os.fdopen(answer, "rb") as answers:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        command = threading.Thread(target=cli.main, args=[["predict", "run", "-"]])
        command.start()
        try:
            for text in ("one", "two"):
                os.write(question, f"{text}\n".encode())
                assert select.select([answers], [], [], 10)[0]
                assert json.loads(answers.readline())["said"] == text
        finally:
            os.close(question)
            command.join()


@pytest.mark.slow
def test_all_is_loaded_before_the_first_line_comes(config_file: Path, tmp_path: Path) -> None:
    elmo_tasks.experiment.train(config_file, tmp_path / "run", overrides=["trainer.num_epochs=1"])
    # Python names each module on standard error as soon as it is imported.
    command = [sys.executable, "-X", "importtime", "-m", "elmo_tasks", "predict", str(tmp_path / "run"), "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, bufsize=1, **pipes) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        before = list(itertools.takewhile(lambda line: "ready; waiting for lines" not in line, process.stderr))
        assert any("nltk.tokenize.punkt" in line for line in before)
        process.stdin.write("Tavo Melin left Brusk.\n")
        assert json.loads(process.stdout.readline())["tokens"] == ["Tavo", "Melin", "left", "Brusk", "."]
        os.write(process.stdin.fileno(), b"\xff\n")  # ends the command
        late = itertools.takewhile(lambda line: not line.startswith("error: "), process.stderr)
        assert [line.split()[-1] for line in late] == ["encodings.utf_8_sig"]


@pytest.mark.usefixtures("load")
def test_a_failed_prediction_leaves_no_output_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt"
    source.write_text("fine\nbad\n")
    assert cli.main(["predict", "run", str(source), "--output", str(tmp_path / "out.jsonl")]) == 2
    assert capsys.readouterr().err == f"error: {source}: bad input\n"
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


def test_an_archive_is_not_a_zip_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["archive", "run", "run.zip"]) == 2
    assert "run.zip: an archive is a .tar.gz file" in capsys.readouterr().err


def test_predict_does_not_start_in_several_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["predict", "run", "in.txt"]) == 2
    assert "start it without torchrun" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "config", "message"),
    [
        ("train", "bilm/tiny", "describes the pretraining of a biLM, not a task; use `elmo-tasks pretrain`"),
        ("pretrain", "ner_conll03", "describes a task, not the pretraining of a biLM; use `elmo-tasks train`"),
        ("train", "{folder}", "a folder; wanted a Jsonnet or JSON file"),
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


@pytest.mark.parametrize("name", ["run.tar.gz", "run.tgz"])
def test_archive(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    archive = Mock()
    monkeypatch.setattr(elmo_tasks.trained_runs, "archive", archive)
    assert cli.main(["archive", "run", name]) == 0
    assert (archive.call_args.args, archive.call_args.kwargs) == (("run", name), {"self_contained": True})
    assert capsys.readouterr().out == f"{name}\n"
    assert cli.main(["archive", "run", "run.tar.gz", "--without-bilm"]) == 0
    assert archive.call_args.kwargs == {"self_contained": False}
