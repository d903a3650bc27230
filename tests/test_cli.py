from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

import elmo_tasks.elmo.embed
import elmo_tasks.experiment
import elmo_tasks.predictors
from elmo_tasks import __version__, cli
from elmo_tasks.commands.command import Command
from elmo_tasks.elmo import BiLM, LayerOutput
from elmo_tasks.elmo.layer_cache import LayerCacheConfig
from elmo_tasks.errors import DataError, ElmoTasksError

COMMANDS = [
    *("train", "evaluate", "predict", "config", "archive", "pretrain", "perplexity"),
    *("embed", "neighbors", "cache", "random-bilm", "sample-data"),
]


class Recorder:
    """Stands in for a function: remembers its arguments and returns what it is told to."""

    def __init__(self, result: Any = None) -> None:
        self.result = result
        self.positional: tuple[Any, ...] = ()
        self.named: dict[str, Any] = {}

    def __call__(self, *positional: Any, **named: Any) -> Any:
        self.positional, self.named = positional, named
        return self.result


def run_python(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **settings)


def help_of(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit:
        cli.main([*arguments, "--help"])
    assert exit.value.code == 0
    return capsys.readouterr().out


def fail(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code when a command raises an error."""

    def run(arguments: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(cli, "_COMMANDS", {"fail": Command("fails", "fail", lambda parser: None, run)})
    return cli.main(["fail"])


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom elmo_tasks.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = run_python("-c", program)
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)
    heavy = {"torch", "datasets", "pydantic", "numpy", "nltk", "seqeval", "sklearn", "accelerate", "rich", "h5py"}
    assert not heavy & set(done.stderr.split())


@pytest.mark.slow
def test_a_run_imports_only_what_it_uses() -> None:
    """scikit-learn, which seqeval and NLTK import, takes a second or more."""
    done = run_python("-c", "import sys, elmo_tasks.experiment\nprint(*sys.modules)")
    assert done.returncode == 0
    assert not {"sklearn", "seqeval", "nltk", "scipy"} & set(done.stdout.split())


def test_the_module_is_the_command() -> None:
    done = run_python("-m", "elmo_tasks", "--version")
    assert (done.returncode, done.stdout) == (0, f"elmo-tasks {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_s_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(command, capsys=capsys)
    assert "example:\n  " in text
    assert f"elmo-tasks {command} " in text.partition("example:")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train"],
        ["train", "a.jsonnet", "--seeds", "1,x"],
        ["train", "a.jsonnet", "--ext-var", "A"],
        ["train", "a.jsonnet", "--resume", "--force"],
        ["predict", "run", "-", "--format", "xml"],
        ["predict", "run", "-", "--batch-tokens", "0"],
        ["evaluate", "run", "data", "--verbose", "--quiet"],
    ],
)
def test_wrong_arguments_end_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main(arguments)
    assert exit.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_errors_of_users_have_a_message_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(DataError("some.txt", "no such file", 3), monkeypatch) == 2
    assert capsys.readouterr() == ("", "error: some.txt:3: no such file\n")


def test_files_that_cannot_be_written_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(PermissionError(13, "Permission denied", "/out"), monkeypatch) == 2
    assert capsys.readouterr().err == "error: /out: Permission denied\n"


def test_defects_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(ZeroDivisionError(), monkeypatch)
    with pytest.raises(OSError, match="odd"):
        fail(OSError("odd"), monkeypatch)


def test_an_interrupt_ends_with_code_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = (
        "import sys\nfrom elmo_tasks import cli\nfrom elmo_tasks.commands.command import Command\n"
        "def run(arguments):\n    for _ in range(100_000):\n        sys.stdout.buffer.write(b'a line\\n')\n"
        "cli._COMMANDS = {'talk': Command('talks', 'talk', lambda parser: None, run)}\n"
        "sys.exit(cli.main(['talk']))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


DEFAULT_FOLDERS = {
    "own.json": "runs/own",
    "elsewhere/own.v2.jsonnet": "runs/own.v2",
    "configs/sst5.jsonnet": "runs/sst5",
    "/configs/home/configs/cpu/baselines/sst5.jsonnet": "runs/cpu/baselines/sst5",
}


def test_train_passes_on_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train = Recorder({"best": {"epoch": 3, "validation": {"f1": 91.2345, "f1/PER": 95.0}}, "test": {"f1": 90.0}})
    monkeypatch.setattr(elmo_tasks.experiment, "train", train)
    assert cli.main(["train", "configs/own.jsonnet"]) == 0
    assert train.positional == ("configs/own.jsonnet", Path("runs/own"))
    assert train.named == {
        "overrides": [],
        "variables": {},
        "seeds": (),
        "resume": False,
        "force": False,
        "self_contained": False,
    }
    output = capsys.readouterr().out
    assert all(word in output for word in ("epoch 3", "test", "91.23", "90.00", "PER", "95.00"))
    for config, folder in DEFAULT_FOLDERS.items():
        assert cli.main(["train", config]) == 0
        assert train.positional == (config, Path(folder))
    capsys.readouterr()

    train.result = {
        "seeds": [1, 2],
        "mean": {"best/epoch": 2.5, "best/validation/f1": 91.0, "test/f1": 90.0, "test/f1/PER": 89.0},
        "std": {"best/epoch": 0.5, "best/validation/f1": 0.25, "test/f1": 0.75, "test/f1/PER": 0.0},
    }
    arguments = "train c.jsonnet -s out --set a.b=1 --set c=d --ext-var N=V=W --seeds 1,2 --resume --self-contained"
    assert cli.main(arguments.split()) == 0
    assert train.positional == ("c.jsonnet", "out")
    assert train.named == {
        "overrides": ["a.b=1", "c=d"],
        "variables": {"N": "V=W"},
        "seeds": (1, 2),
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
    monkeypatch.setattr(elmo_tasks.experiment, "train", Recorder({"best": {"epoch": 1, "validation": {"f1": 91.0}}}))
    monkeypatch.setenv("RANK", "1")
    assert cli.main(["train", "c.jsonnet"]) == 0
    assert capsys.readouterr().out == ""


def test_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = {"f1": 92.22, "f1/LOC": 93.41, "loss": 0.5}
    evaluate = Recorder(metrics)
    monkeypatch.setattr(elmo_tasks.experiment, "evaluate", evaluate)
    target = tmp_path / "metrics.json"
    arguments = ["--json", "--output", str(target), "--device", "cpu", "--set", "a=b", "--batch-tokens", "99"]
    assert cli.main(["evaluate", "run", "data", "--predictions", "p.jsonl", *arguments]) == 0
    assert evaluate.positional == ("run", "data")
    assert evaluate.named == {
        "predictions": "p.jsonl",
        "batch_tokens": 99,
        "overrides": ["trainer.device=cpu", "a=b"],
    }
    assert json.loads(capsys.readouterr().out) == json.loads(target.read_text()) == metrics

    assert cli.main(["evaluate", "run", "data"]) == 0
    assert evaluate.named == {"predictions": None, "batch_tokens": None, "overrides": []}
    output = capsys.readouterr().out
    assert all(word in output for word in ("f1", "92.22", "LOC", "93.41", "loss", "0.50"))


class EchoPredictor:
    def predict(self, inputs: Iterable[Mapping[str, Any]], *, source: str) -> Iterator[dict[str, Any]]:
        for fields in inputs:
            if fields["text"] == "bad":
                raise ElmoTasksError("bad input")
            yield {"said": fields["text"], "source": source}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    load = Recorder(EchoPredictor())
    monkeypatch.setattr(elmo_tasks.experiment, "load_predictor", load)
    return load


def test_predict_prints_json_lines(tmp_path: Path, load: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt"
    source.write_text("one\nzwölf\n", encoding="utf-8")
    assert cli.main(["predict", "run", str(source), "--batch-tokens", "99"]) == 0
    expected = [{"said": "one", "source": str(source)}, {"said": "zwölf", "source": str(source)}]
    output = capsys.readouterr().out
    assert "zwölf" in output
    assert [json.loads(line) for line in output.splitlines()] == expected
    assert load.positional == ("run",)
    assert load.named == {"overrides": [], "batch_tokens": 99, "predicates": None}

    target = tmp_path / "out.jsonl"
    assert cli.main(["predict", "run", str(source), "--output", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == output
    assert capsys.readouterr().out == ""

    assert cli.main(["predict", "run", str(source), "--predicates", "tagger", "--set", "a=b"]) == 0
    assert load.named["overrides"] == ["a=b"]
    assert isinstance(load.named["predicates"], EchoPredictor)


def test_the_device_is_that_of_the_tagger_of_predicates_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert not validator.is_valid({"train_data_path": "train.txt"})  # of the rest there is nothing


def test_config_tells_a_pretraining_by_its_corpus(
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


def test_a_random_bilm_can_embed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["random-bilm", str(tmp_path / "bilm"), "--size", "tiny", "--seed", "3"]) == 0
    captured = capsys.readouterr()
    options, weights = captured.out.splitlines()
    assert "untrained" in captured.err
    assert BiLM.load(options, weights).options.lstm.dim == 128

    source, target = tmp_path / "in.txt", tmp_path / "out.npz"
    source.write_text("Ann left. Bo stayed.\n")
    files = ["--options", options, "--weights", weights, "--output", str(target)]
    assert cli.main(["embed", str(source), *files, "--raw", "--layers", "top", "--pool", "mean"]) == 0
    assert target.is_file()
    assert "vectors of 2 sentences" in " ".join(capsys.readouterr().err.split())


def test_embed_passes_on_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embed_file, load = Recorder(2), Recorder("the biLM")
    monkeypatch.setattr(elmo_tasks.elmo.embed, "embed_file", embed_file)
    monkeypatch.setattr(BiLM, "load", load)
    arguments = "embed in.txt --output out.hdf5 --options o --weights w --stateful --batch-tokens 9"
    assert cli.main(arguments.split()) == 0
    assert (load.positional, load.named) == ((Path("o"), Path("w")), {"stateful": True})
    assert embed_file.positional == ("in.txt", "out.hdf5", "the biLM")
    assert embed_file.named == {
        "layers": "all",
        "pool": "none",
        "tokenize": None,
        "max_tokens": 9,
        "keep_sentences": True,
    }


def test_sample_data_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2,1"]) == 0
    paths = capsys.readouterr().out.splitlines()
    assert paths
    assert all(Path(path).is_file() for path in paths)
    assert cli.main(["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2"]) == 2
    assert "wanted three" in capsys.readouterr().err


def test_archive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    archive = Recorder()
    monkeypatch.setattr(elmo_tasks.experiment, "archive", archive)
    assert cli.main(["archive", "run", "run.tar.gz"]) == 0
    assert (archive.positional, archive.named) == (("run", "run.tar.gz"), {"self_contained": True})
    assert capsys.readouterr().out == "run.tar.gz\n"
    assert cli.main(["archive", "run", "run.tar.gz", "--without-bilm"]) == 0
    assert archive.named == {"self_contained": False}


def test_cache_lists_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path))
    cache = LayerCacheConfig().build("f" * 64, "float32", num_layers=2, output_size=4)
    cache.fill([["one", "two"]], ConstantLayers())
    assert cli.main(["cache", "info"]) == 0
    listed = capsys.readouterr().out
    assert cache.key.name[:8] in listed
    assert "ffffffff" in listed
    assert cli.main(["cache", "clear", "no-such-name"]) == 2
    assert cli.main(["cache", "clear", cache.key.name[:8]]) == 0
    assert "freed" in capsys.readouterr().out
    assert not cache.folder.exists()


class ConstantLayers:
    """A biLM that knows one vector."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        shape = (len(sentences), max(map(len, sentences)))
        return LayerOutput(torch.ones(shape[0], 2, shape[1], 4), torch.ones(shape, dtype=torch.bool))
