"""The options of all commands: what they are called, take and mean. `options.json` has them.

After a change on purpose: `python -m tests.commands.test_options`.
"""

import argparse
import contextlib
import inspect
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.cli import main, make_parser
from elmo_tasks.commands.command import COMMANDS
from elmo_tasks.commands.options import Number, default_run_folder, run_overrides, tokenizer_overrides
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.allennlp.importing import import_allennlp
from elmo_tasks.extras.compare.comparison import compare
from elmo_tasks.extras.compare.error_report import errors
from elmo_tasks.extras.pretraining.pretrain import pretrain
from elmo_tasks.extras.repeats.repeats import train_seeds
from elmo_tasks.extras.samples import write_sample_data
from elmo_tasks.runs import train
from elmo_tasks.runs.archive import archive
from tests.hooked import hooked

SNAPSHOT = Path(__file__).with_name("options.json")

# Each command with what it must have.
SHORTEST = [
    "train c", "evaluate r d", "predict r -", "data c", "config", "models", "archive r f", "plot r --output f",
    "compare r", "errors r", "calibrate r", "serve r", "pretrain c", "study", "report d", "tune", "score t",
    "perplexity t",
    "embed i --output f", "neighbors s --word w --pool p", "similarity w s t",
    "probe pos", "fetch", "import-allennlp a r", "sample-data d", "export r f",
]  # fmt: skip

# Options whose values are more than a string or a number.
CONVERTED: dict[str, dict[str, Any]] = {
    "train c --set a.b=1 --set c=x=y --ext-var N=V=W --ext-var M=": {
        "set": ["a.b=1", "c=x=y"], "ext_var": [("N", "V=W"), ("M", "")]},
    "train c --seeds '3, 1'": {"seeds": (3, 1)},
    "train c --seeds 1-2,7": {"seeds": (1, 2, 7)},
    "train c --seeds 0-9998,4294967295": {"seeds": (*range(9999), 4294967295)},
    "train c --folds 2147483647": {"folds": 2147483647},
    "study --shares 0.1,1 --seeds 1-3": {"shares": (0.1, 1.0), "seeds": (1, 2, 3)},
    "serve r --port 65535 --timeout 7": {"port": 65535, "timeout": 7},
    "embed i --output f --shard 2/3 --layers top": {"shard": (2, 3), "layers": "top"},
    "sample-data d --sentences 1,20,2147483647": {"sentences": (1, 20, 2147483647)},
}  # fmt: skip

WRONG = {
    "train c --seeds 1,x": "'1,x' is not a list of seeds; expected one such as 1-3 or 1,2,5",
    "train c --seeds 3-1": "'3-1' is not a list of seeds",
    "train c --seeds 1-": "'1-' is not a list of seeds",
    "train c --seeds 1-3,2": "'1-3,2' has a seed twice; expected each once",
    "train c --seeds 0-10000": "'0-10000' has too many seeds; expected at most 10000",
    "train c --seeds 0-9999,20000": "'0-9999,20000' has too many seeds; expected at most 10000",
    "train c --seeds 4294967296": "'4294967296' is not a list of seeds",
    "train c --folds 0": "'0' is not a whole number of at least 1\n",
    "train c --folds 2147483648": "'2147483648' is not a whole number of at least 1 and at most 2147483647\n",
    "train c --resume --force": "not allowed with argument",
    "train c --predictions train": "invalid choice: 'train'",
    "train c --set a": "'a' has no value; write --set a=VALUE",
    "train c --ext-var a": "'a' does not have the form NAME=VALUE",
    "train c --ext-var =a": "'=a' does not have the form NAME=VALUE",
    "plot r": "the following arguments are required: --output",
    "serve r --port 65536": "'65536' is not a port from 0 to 65535",
    "study c --shares 0,1": "'0,1' is not a comma-separated list of numbers above 0 and up to 1",
    "study c --shares 0.1,2": "'0.1,2' is not a comma-separated list of numbers above 0 and up to 1",
    "embed i --output f --batch-tokens 0": "'0' is not a whole number of at least 1",
    "compare r --seed 4294967296": "'4294967296' is not a whole number from 0 to 4294967295",
    **{
        f"sample-data d --sentences {sizes}": f"'{sizes}'; expected three whole numbers of at least 1 with commas"
        for sizes in ("1,,2", "1,0,2", "1,2147483648,2", "1,2")
    },
}


def parsed(line: str) -> dict[str, Any]:
    """The arguments of a command line, except for what all commands have."""
    words = shlex.split(line)
    found = vars(cli.make_parser([words[0]]).parse_args(words))
    return {name: value for name, value in found.items() if name not in ("run", "parser", "verbosity")}


def described(action: argparse.Action) -> dict[str, Any]:
    kind = vars(action.type) if isinstance(action.type, Number) else getattr(action.type, "__name__", None)
    keys = ("dest", "nargs", "const", "default", "choices", "required", "metavar", "help")
    return {key: getattr(action, key) for key in keys} | {"type": kind, "action": type(action).__name__}


def options_of(command: str) -> dict[str, Any]:
    """What `--help` shows of each option, and which of them exclude each other."""
    parser = make_parser([command])._subparsers._group_actions[0].choices[command]  # type: ignore
    found = {"/".join(each.option_strings) or each.dest: described(each) for each in parser._actions[1:]}
    either = [[each.dest for each in group._group_actions] for group in parser._mutually_exclusive_groups]
    return found | {"either": either, "description": parser.description, "epilog": parser.epilog}


def all_options() -> dict[str, Any]:
    return json.loads(json.dumps({command: options_of(command) for command in COMMANDS}))


def test_no_option_has_changed() -> None:
    assert all_options() == json.loads(SNAPSHOT.read_text(encoding="utf-8")), __doc__


@pytest.mark.parametrize("line", CONVERTED)
def test_values_that_are_converted(line: str) -> None:
    assert parsed(line).items() >= CONVERTED[line].items()


INCLUDING = [line if " " in line else f"{line} c" for line in SHORTEST if "include_package" in parsed(line)]
OUTSIDE = """
from typing import Literal
from elmo_tasks.data_readers import DatasetReaderConfig
class Outside(DatasetReaderConfig):
    type: Literal["{name}"] = "{name}"
"""


@pytest.mark.parametrize("line", INCLUDING)
def test_a_command_includes_packages_before_it_reads_anything(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is one that only this command knows, so that no earlier command can have included it."""
    name = f"outside_{line.split()[0]}"
    (tmp_path / f"{name}.py").write_text(OUTSIDE.format(name=name), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_TASKS_DATA", str(tmp_path))
    try:
        words = [f"{word}.svg" if line.startswith("plot") and word == "f" else word for word in shlex.split(line)]
        assert cli.main([*words, "--include-package", name]) == 2  # none of the files is there
        assert name in DatasetReaderConfig.alternatives
    finally:
        DatasetReaderConfig.alternatives.pop(name, None)


# The arguments of functions that have another name than the option.
RENAMED = {"set": "overrides", "ext_var": "variables", "start_from": "from_run", "examples": "num_examples",
           "run_path": "path", "run_paths": "path", "run_folder": "folder", "config": "config_path", "file": "target",
           "archive": "path"}  # fmt: skip
CALLED: dict[str, Callable[..., Any]] = {
    "train": train.train, "train --seeds": train_seeds, "evaluate": elmo_tasks.evaluate,
    "archive": archive, "pretrain": pretrain, "compare": compare, "errors": errors,
    "import-allennlp": import_allennlp, "sample-data": write_sample_data,
}  # fmt: skip
CHANGED = "--set a.b=1 --set c=x=y --ext-var N=V=W --ext-var M= --include-package p --include-package q"
CALLING = [
    *(line for line in SHORTEST if line.split()[0] in CALLED),
    f"train c {CHANGED} -s d --from r --resume --self-contained --predictions test --predictions validation",
    "train c --seeds '3, 1' --run-folder d --force",
    "train c --folds 2",
    "evaluate r d --batch-tokens 1 --set a=b --predictions p --confusion --unknown-labels count",
    "archive r f --force --without-bilm",
    "compare r s --metric m --resamples 1 --seed 7 --device auto",
    "errors r d --examples 1 --device cpu",
    f"pretrain c {CHANGED} -s d --from default --resume",
    "pretrain c --force",
    "import-allennlp a r --transformer b --force",
    "sample-data d --task ner --force --sentences 30,20,10",
]


def plain(value: Any) -> Any:
    """A value in a form in which it is the same before and after it is handed over."""
    if isinstance(value, Mapping):
        return list(value.items())
    return [*value] if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize("line", CALLING)
def test_a_command_hands_its_options_to_its_function(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").touch()  # the packages to include
    (tmp_path / "q.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["f.tar.gz" if word == "f" else word for word in shlex.split(line)]
    command, *_ = words
    repeated = [word for word in words if command == "train" and word == "--seeds"]
    function = CALLED[" ".join([command, *repeated])]
    called = Mock(side_effect=ElmoTasksError("was called"))
    kind = "".join(repeated).removeprefix("--")
    with hooked("repeated_training", kind, called) if kind else contextlib.nullcontext():  # before the function changes
        monkeypatch.setattr(sys.modules[function.__module__], function.__name__, called)
        assert cli.main(words) == 2
    assert capsys.readouterr().err.endswith("error: was called\n")
    given = inspect.signature(function).bind(*called.call_args.args, **called.call_args.kwargs).arguments
    given |= given.pop("settings", {})
    arguments = cli.make_parser([command]).parse_args(words)
    options = {"self_contained": not getattr(arguments, "without_bilm", True)} | vars(arguments)
    if "device" in options:
        options["set"] = run_overrides(argparse.Namespace(**{"set": [], **options}))
    if options.get("config"):
        options["run_folder"] = options["run_folder"] or default_run_folder(options["config"])
    names = options.keys() - {"device", "paths"}  # the last path can be data
    handed = {name: name if name in given else RENAMED.get(name, "") for name in names}
    handed = {name: parameter for name, parameter in handed.items() if parameter in given}
    assert len(handed) > 1
    for name, parameter in handed.items():
        assert plain(given[parameter]) == plain(options[name]), name


def test_every_command_is_in_these_tests() -> None:
    assert {line.split()[0] for line in SHORTEST} == set(COMMANDS)


@pytest.mark.parametrize("line", WRONG)
def test_wrong_options_are_refused_with_a_reason(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        parsed(line)
    assert exit.value.code == 2
    message, hint = capsys.readouterr().err.splitlines(keepends=True)
    assert message.startswith("error: ")
    assert WRONG[line] in message
    assert hint == f"For help: elmo-tasks {line.split()[0]} --help\n"


def test_the_options_of_a_run_become_overrides_of_its_config() -> None:
    parse = cli.make_parser(["predict"]).parse_args
    arguments = parse(
        ["predict", "r", "-", "--device", "cpu", "--set", "trainer.device=auto", "--tokenizer", ' {"type": "unicode"}']
    )
    assert run_overrides(arguments) == ["trainer.device=cpu", "trainer.device=auto"]
    assert tokenizer_overrides(arguments) == ['dataset_reader.tokenizer= {"type": "unicode"}']
    with pytest.raises(ElmoTasksError, match="the tokenizer 'spacy': unknown type"):
        tokenizer_overrides(parse(["predict", "r", "-", "--tokenizer", "spacy"]))
    assert run_overrides(parse(["predict", "r", "-"])) == tokenizer_overrides(parse(["predict", "r", "-"])) == []


@pytest.mark.parametrize("line", [each for each in SHORTEST if "device" in parsed(each)])
def test_commands_that_run_a_model_name_the_device_alike(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    confusion = ["--confusion", "d"] if line.startswith("plot") else []
    line = line.replace("--output f", "--output f.svg").replace("serve r", "serve r --port 0")
    cli.main([*line.split(), *confusion, "--device", "cuda"])
    assert capsys.readouterr().err.endswith(
        "error: --device: 'cuda' needs a GPU that torch can use, and there is none; use 'auto'\n"
    )


# One option of each kind that has bounds.
BOUNDED = [
    ("train", "--seeds"), ("train", "--folds"), ("study", "--shares"), ("serve", "--port"), ("serve", "--timeout"),
    ("score", "--substitutes"), ("embed", "--layers"), ("embed", "--shard"), ("probe", "--seed"),
    ("sample-data", "--sentences"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "option"), BOUNDED)
@pytest.mark.parametrize("value", ["-1", "x", "1.5e", "", "9" * 40, "-1,2", "3/2", "nan", "٣"])
def test_numbers_out_of_bounds_are_refused(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main([command, "a", "b", f"{option}={value}"])
    assert exit.value.code == 2
    assert re.match(rf"error: argument {option}: '{re.escape(value)}'( is not |; expected )", capsys.readouterr().err)


def test_positional_arguments_may_follow_options() -> None:
    for line in ("evaluate A B --device cpu D", "evaluate A --device cpu B D", "evaluate --device cpu A B D"):
        found = parsed(line)
        assert [*found["run_paths"], *found["data"]] == ["A", "B", "D"]
        assert found["device"] == "cpu"
    for line in ("similarity w --device cpu s t", "similarity w s --device cpu t", "similarity --device cpu w s t"):
        assert (parsed(line)["word"], parsed(line)["sentences"]) == ("w", ["s", "t"])
    for line in ("predict A --set a=b in.txt", "predict --set a=b A in.txt"):
        assert (parsed(line)["run_paths"], parsed(line)["input"]) == (["A"], ["in.txt"])
    found = parsed("predict A --explain in.txt")
    assert (found["explain"], found["run_paths"], found["input"]) == (True, ["A"], ["in.txt"])
    assert parsed("compare A --json B")["paths"] == ["A", "B"]
    assert parsed("archive A --force f.tar.gz")["file"] == "f.tar.gz"


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        ("x.jsonnet", "runs/x"),
        ("elsewhere/x.jsonnet", "runs/x"),
        ("configs/cpu/x.jsonnet", "runs/cpu/x"),
        ("configs/old/configs/cpu/x.json", "runs/cpu/x"),
    ],
)
def test_a_run_folder_is_the_path_of_its_config_below_the_last_configs(config: str, folder: str) -> None:
    assert default_run_folder(config) == Path(folder)


RESUMED, AGAIN = "the same command with --resume, and without --force, goes on", "the same command goes on"


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("train ner_conll03", RESUMED),
        ("train cpu/sst5 --force --seeds 1,2", RESUMED),
        ("pretrain bilm/tiny --from default", RESUMED),
        ("study table2", AGAIN),
        ("tune tune_quick", AGAIN),
        ("train ner_conll03 --dry-run", ""),
        ("study --list", ""),
        ("evaluate runs/ner data.txt", ""),
    ],
)
def test_an_interrupted_command_says_how_to_go_on(
    words: str, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: argparse.Namespace) -> None:
        raise KeyboardInterrupt

    name, *_ = words.split()
    monkeypatch.setitem(COMMANDS, name, COMMANDS[name]._replace(run=interrupted))
    assert main(shlex.split(words)) == 130
    assert capsys.readouterr().err == (f"interrupted; {how}\n" if how else "interrupted\n")


if __name__ == "__main__":
    lines = [
        f"{json.dumps(command)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items())
        for command, found in all_options().items()
    ]
    SNAPSHOT.write_text("{\n" + "},\n".join(lines) + "}}\n", encoding="utf-8")
