"""The options that several commands share."""

from __future__ import annotations

import argparse
import inspect
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
from elmo_tasks.commands.command import COMMANDS, GROUPS
from elmo_tasks.commands.numbers import NUMBERS, Number
from elmo_tasks.commands.options import command_to_go_on, default_run_folder, run_overrides, tokenizer_overrides
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.evaluation.comparison import compare
from elmo_tasks.evaluation.error_report import errors
from elmo_tasks.migration.importing import import_allennlp
from elmo_tasks.predictors import Predictor
from elmo_tasks.pretraining.pretrain import pretrain
from elmo_tasks.runs import train
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.repeated import train_folds, train_seeds
from elmo_tasks.sample_data import write_sample_data

# What a command has if nothing but what it must have is given.
CONFIG: dict[str, Any] = {"set": [], "ext_var": [], "include_package": []}
PARTS: dict[str, Any] = {"shard": None, "check": False, "engine": "local", "address": None, "workers": None,
                         "part_tokens": None}  # fmt: skip
TEXT: dict[str, Any] = {"tokenizer": None, "tokenized": False, "include_package": []}
RUN: dict[str, Any] = {"batch_tokens": None, "device": None, "set": [], "include_package": []}
TRAINING: dict[str, Any] = {**CONFIG, "run_folder": None, "start_from": None, "resume": False, "force": False}
ANALYSIS: dict[str, Any] = {"device": None, "json": False, "include_package": [], "unknown_labels": "error"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "train c": {**TRAINING, "config": "c", "seeds": (), "folds": None, "predictions": [], "self_contained": False,
                "dry_run": False},
    "evaluate r d": {**RUN, "run_paths": ["r"], "data": ["d"], "predictions": None, "confusion": False, "output": None,
                     "force": False, "json": False, "unknown_labels": "error"},
    "predict r -": {**RUN, **TEXT, **PARTS, "run_paths": ["r"], "input": ["-"], "format": "auto", "on_error": "fail",
                    "explain": None, "output": None, "output_format": "jsonl", "prediction_column": "predicted",
                    "html": None, "force": False, "json": False,
                    "predicates": None},
    "data c": {**CONFIG, "config": "c", "output": None, "force": False, "json": False},
    "config": {**CONFIG, "config": None, "list": False, "copy": None, "force": False, "schema": False},
    "models": {"name": None, "json": False},
    "archive r f": {"run_path": "r", "file": "f", "force": False, "without_bilm": False},
    "plot r --output f": {"run_paths": ["r"], "output": "f", "force": False, "confusion": None, "device": None,
                          "unknown_labels": "error", "include_package": []},
    "compare r": {**ANALYSIS, "paths": ["r"], "metric": None, "resamples": 10000, "seed": 13370, "examples": 0},
    "errors r": {**ANALYSIS, "path": "r", "data": None, "examples": 20},
    "serve r": {"runs": ["r"], "host": "127.0.0.1", "port": 8000, "device": None, "neighbors": None,
                "allow_origin": [], "note": None, "batch_tokens": 2048, "batch_wait": 5, "max_tokens": 2000,
                "max_bytes": 100_000, "max_requests": 256, "max_waiting_tokens": 20_000, "timeout": 30,
                "include_package": []},
    "pretrain c": {**TRAINING, "config": "c", "dry_run": False},
    "study": {
        **CONFIG, "study": None, "study_folder": None, "jobs": None, "engine": "local", "address": None,
        "arm": [], "shares": (), "seeds": (), "dry_run": False, "list": False},
    "report d": {"folder": "d"},
    "tune": {**CONFIG, "search": None, "search_folder": None, "dry_run": False, "list": False},
    "score t": {**TEXT, "device": "auto", "bilm": "default", "text": "t", "json": False, "substitutes": 0,
                "output": None, "html": None, "force": False},
    "perplexity t": {**TEXT, "device": "auto", "bilm": "default", "text": ["t"], "json": False},
    "embed i --output f": {**TEXT, **PARTS, "device": "auto", "input": ["i"], "output": "f", "force": False,
                           "number_type": None, "on_error": "fail",
                           "bilm": None, "options": None, "weights": None, "layers": None, "pool": "none",
                           "precision": "float32", "stateful": False, "no_index": False, "batch_tokens": 4096},
    "neighbors s --word w --pool p": {**TEXT, "device": "auto", "sentence": "s", "word": "w", "pool": "p",
                                      "bilm": "default", "same_word": False, "static": None, "count": 5, "json": False},
    "similarity w s t": {**TEXT, "device": "auto", "bilm": "default", "word": "w", "sentences": ["s", "t"],
                         "static": None, "json": False},
    "cache info": {"action": "info", "what": None},
    "random-bilm d": {"folder": "d", "size": "small", "seed": 0, "force": False},
    "probe pos": {"what": "pos", "device": "auto", "bilm": "default", "reader": None, "test": None,
                  "pooling": None, "vectors": None, "seed": 0, "json": False, "output": None, "force": False,
                  "include_package": []},
    "fetch": {"names": [], "list": False},
    "push m t": {"model": "m", "target": "t", "private": False, "dry_run": False,
                 "include_package": []},
    "import-allennlp a r": {"archive": "a", "run_folder": "r", "bilm": None, "force": False},
    "sample-data d": {"folder": "d", "task": "all", "force": False, "sentences": None},
}  # fmt: skip

# Options, as people write them, and what they change.
CHANGED = "--set a.b=1 --set c=x=y --ext-var N=V=W --ext-var M= --include-package p --include-package q"
CHANGES: dict[str, Any] = {
    "set": ["a.b=1", "c=x=y"],
    "ext_var": [("N", "V=W"), ("M", "")],
    "include_package": ["p", "q"],
}
GIVEN: dict[str, dict[str, Any]] = {
    f"train c {CHANGED} -s d --from r --resume --self-contained --dry-run --predictions test "
    "--predictions validation": {
        **CHANGES, "run_folder": "d", "start_from": "r", "resume": True, "self_contained": True,
        "predictions": ["test", "validation"], "dry_run": True},
    "train c --seeds '3, 1' --run-folder d --force": {"seeds": (3, 1), "run_folder": "d", "force": True},
    "train c --seeds 1-3": {"seeds": (1, 2, 3)},
    "train c --seeds 1-2,7": {"seeds": (1, 2, 7)},
    "train c --folds 2": {"folds": 2},
    "evaluate r d --batch-tokens 1 --device cuda --set a=b --predictions p --confusion --output o --force --json "
    "--unknown-labels count": {
        "unknown_labels": "count",
        "batch_tokens": 1, "device": "cuda", "set": ["a=b"], "predictions": "p", "confusion": True, "output": "o",
        "force": True, "json": True},
    "predict r - --format allennlp --tokenizer unicode --output o --html h --force --json --predicates t": {
        "format": "allennlp", "tokenizer": "unicode", "output": "o", "html": "h", "force": True, "json": True,
        "predicates": "t"},
    "predict r - --format jsonl --tokenized --on-error skip": {
        "format": "jsonl", "tokenized": True, "on_error": "skip"},
    f"data c {CHANGED} --json --output f --force": {**CHANGES, "json": True, "output": "f", "force": True},
    f"config c {CHANGED} --copy f --force": {**CHANGES, "config": "c", "copy": "f", "force": True},
    "config --list": {"list": True},
    "config --schema": {"schema": True},
    "models n --json": {"name": "n", "json": True},
    "archive r f --force --without-bilm": {"force": True, "without_bilm": True},
    "plot r s --output f --force --confusion d --device cpu --include-package p": {
        "run_paths": ["r", "s"], "force": True, "confusion": "d", "device": "cpu", "include_package": ["p"]},
    "compare r s --metric m --resamples 1 --seed 7 --examples 3 --device auto --json --include-package p": {
        "paths": ["r", "s"], "metric": "m", "resamples": 1, "seed": 7, "examples": 3, "device": "auto", "json": True,
        "include_package": ["p"]},
    "errors r d --examples 1 --device cpu --json --include-package p": {
        "data": "d", "examples": 1, "device": "cpu", "json": True, "include_package": ["p"]},
    "serve r n=s --host 0.0.0.0 --port 65535 --device cpu --neighbors f --allow-origin x --allow-origin y --note t": {
        "runs": ["r", "n=s"], "host": "0.0.0.0", "port": 65535, "device": "cpu", "neighbors": "f",
        "allow_origin": ["x", "y"], "note": "t"},
    "serve r --port 0 --batch-tokens 1 --batch-wait 2 --max-tokens 3 --max-bytes 4 --max-requests 5 --timeout 7 "
    "--max-waiting-tokens 6 --include-package p": {
        "port": 0, "batch_tokens": 1, "batch_wait": 2, "max_tokens": 3, "max_bytes": 4, "max_requests": 5,
        "max_waiting_tokens": 6, "timeout": 7, "include_package": ["p"]},
    f"study c {CHANGED} -s d --jobs 2 --engine ray --address auto --arm A* --arm B --shares 0.1,1 --seeds 1-2 "
    "--dry-run": {
        **CHANGES, "study": "c", "study_folder": "d", "jobs": 2, "engine": "ray", "address": "auto",
        "arm": ["A*", "B"], "shares": (0.1, 1.0), "seeds": (1, 2), "dry_run": True},
    "study --list --study-folder d": {"list": True, "study_folder": "d"},
    f"tune c {CHANGED} -s d --dry-run": {
        **CHANGES, "search": "c", "search_folder": "d", "dry_run": True},
    "tune --list --search-folder d": {"list": True, "search_folder": "d"},
    f"pretrain c {CHANGED} -s d --from default --resume --dry-run": {
        **CHANGES, "run_folder": "d", "start_from": "default", "resume": True, "dry_run": True},
    "pretrain c --force": {"force": True},
    "score t --bilm b --substitutes 3 --output o --html h --force --json --tokenized": {
        "bilm": "b", "substitutes": 3, "output": "o", "html": "h", "force": True, "json": True, "tokenized": True},
    "perplexity t u --bilm b --tokenized --json --include-package p": {
        "bilm": "b", "text": ["t", "u"], "tokenized": True, "json": True, "include_package": ["p"]},
    "embed i --output f --force --bilm b --options o --weights w --layers top --pool max --precision int8 --no-index "
    "--tokenizer unicode --batch-tokens 1 --include-package p": {
        "force": True, "bilm": "b", "options": "o", "weights": "w", "layers": "top", "pool": "max",
        "precision": "int8", "no_index": True, "tokenizer": "unicode", "batch_tokens": 1, "include_package": ["p"]},
    "embed i --output f --stateful --pool mean --device cpu": {"stateful": True, "pool": "mean", "device": "cpu"},
    "neighbors s --word w --pool p --bilm b --same-word --static f --count 1 --json --tokenized --include-package p": {
        "bilm": "b", "same_word": True, "static": "f", "count": 1, "json": True, "tokenized": True,
        "include_package": ["p"]},
    "similarity w s t --bilm b --static f --json --tokenized --include-package p": {
        "bilm": "b", "static": "f", "json": True, "tokenized": True, "include_package": ["p"]},
    "cache clear all": {"action": "clear", "what": "all"},
    "random-bilm d --size original --seed 3 --force": {"size": "original", "seed": 3, "force": True},
    "probe wsd --bilm b --reader conllu --test t --pooling endpoints --vectors v --seed 3 --json --output o --force "
    "--include-package p": {
        "what": "wsd", "bilm": "b", "reader": "conllu", "test": "t", "pooling": "endpoints", "vectors": "v", "seed": 3,
        "json": True, "output": "o", "force": True, "include_package": ["p"]},
    "probe pos --pooling mean": {"pooling": "mean"},
    "fetch a b": {"names": ["a", "b"]},
    "fetch --list": {"list": True},
    "push m t --private --dry-run --include-package p": {
        "private": True, "dry_run": True, "include_package": ["p"]},
    "import-allennlp a r --bilm b --force": {"bilm": "b", "force": True},
    "sample-data d --task ner --force --sentences 30,20,10": {
        "task": "ner", "force": True, "sentences": (30, 20, 10)},
}  # fmt: skip

WRONG = {
    "train c --seeds 1,x": "'1,x' is not a list of seeds; expected one such as 1-3 or 1,2,5",
    "train c --seeds 3-1": "'3-1' is not a list of seeds",
    "train c --seeds 1-": "'1-' is not a list of seeds",
    "study c --seeds 1-3,2": "'1-3,2' has a seed twice",
    "train c --seeds 1,2,1": "'1,2,1' has a seed twice; expected each once",
    "train c --folds 1": "'1' is not a whole number of at least 2",
    "train c --folds two": "'two' is not a whole number of at least 2",
    "train c --folds 2 --seeds 1": "not allowed with argument",
    "train c --resume --force": "not allowed with argument",
    "train c --predictions train": "invalid choice: 'train'",
    "train c --set a": "'a' has no value; write --set a=VALUE",
    "train c --ext-var a": "'a' does not have the form NAME=VALUE",
    "train c --ext-var =a": "'=a' does not have the form NAME=VALUE",
    "evaluate r d --set a": "'a' has no value; write --set a=VALUE",
    "evaluate r d --batch-tokens 0": "'0' is not a whole number of at least 1",
    "evaluate r d --device tpu": "invalid choice: 'tpu'",
    "predict r - --format csv": "invalid choice: 'csv'",
    "predict r - --tokenizer unicode --tokenized": "not allowed with argument",
    "config --list --schema": "not allowed with argument",
    "plot r": "the following arguments are required: --output",
    "plot --output f": "the following arguments are required: RUN",
    "plot r --output f --device gpu": "invalid choice: 'gpu'",
    "compare": "the following arguments are required: SYSTEM",
    "compare r --resamples 0": "'0' is not a whole number of at least 1",
    "compare r --seed -1": "'-1' is not a whole number from 0 to 4294967295",
    "compare r --examples x": "'x' is not a whole number of at least 1",
    "compare r --device gpu": "invalid choice: 'gpu'",
    "errors r --examples 0": "'0' is not a whole number of at least 1",
    "serve r --port 65536": "'65536' is not a port from 0 to 65535",
    "serve r --port http": "'http' is not a port from 0 to 65535",
    "serve r --timeout 0": "'0' is not a whole number of at least 1",
    "study c --shares 0.1,2": "'0.1,2' is not a comma-separated list of numbers above 0 and up to 1",
    "study c --shares x": "'x' is not a comma-separated list of numbers above 0 and up to 1",
    "study c --seeds 1,1": "'1,1' has a seed twice; expected each once",
    "study --jobs 0": "'0' is not a whole number of at least 1",
    "pretrain c --resume --force": "not allowed with argument",
    "perplexity --bilm b": "the following arguments are required: TEXT",
    "embed i": "the following arguments are required: --output",
    "embed i --output f --pool sum": "invalid choice: 'sum'",
    "embed i --output f --precision float16": "invalid choice: 'float16'",
    "embed i --output f --precision int8 --stateful": "not allowed with argument",
    "embed i --output f --batch-tokens 0": "'0' is not a whole number of at least 1",
    "similarity w": "the following arguments are required: SENTENCE",
    "neighbors s --pool p": "the following arguments are required: --word",
    "neighbors s --word w": "the following arguments are required: --pool",
    "neighbors s --word w --pool p --count 0": "'0' is not a whole number of at least 1",
    "cache show": "invalid choice: 'show'",
    "random-bilm d --size large": "invalid choice: 'large'",
    "random-bilm d --seed x": "'x' is not a whole number from 0 to 4294967295",
    "random-bilm d --seed 4294967296": "'4294967296' is not a whole number from 0 to 4294967295",
    "probe pos --pooling max": "invalid choice: 'max'",
    "probe pos --seed -1": "'-1' is not a whole number from 0 to 4294967295",
    "sample-data d --sentences 1,,2": "'1,,2'; expected three whole numbers of at least 1 with commas: training",
}


def parsed(line: str) -> dict[str, Any]:
    """The arguments of a command line, except for what all commands have."""
    words = shlex.split(line)
    found = vars(cli.make_parser([words[0]]).parse_args(words))
    return {name: value for name, value in found.items() if name not in ("run", "parser", "verbosity")}


@pytest.mark.parametrize("line", DEFAULTS)
def test_what_a_command_does_without_options(line: str) -> None:
    assert parsed(line) == DEFAULTS[line]


INCLUDING = [line if " " in line else f"{line} c" for line, found in DEFAULTS.items() if "include_package" in found]
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


# What Python has under another name, and what only a command needs, or another function does.
RENAMED = {"set": "overrides", "ext_var": "variables", "start_from": "from_run", "examples": "num_examples",
           "run_path": "path", "run_paths": "path",
           "run_folder": "folder", "config": "config_path", "file": "target", "archive": "path",
           "folds": "num_folds"}  # fmt: skip
PRINTING = {"include_package", "json", "output", "force"}
FUNCTIONS: dict[str, tuple[list[Callable[..., Any]], set[str]]] = {
    "train c": ([train.train], {"include_package", "seeds", "folds", "dry_run"}),
    "evaluate r d": ([elmo_tasks.evaluate], PRINTING),
    "predict r -": (
        [elmo_tasks.load, Predictor.__call__],
        PRINTING
        | {*PARTS, "html", "input", "output_format", "prediction_column", "run_paths", "tokenizer", "tokenized"},
    ),
    "compare r": ([compare], PRINTING),
    "errors r": ([errors], PRINTING),
}


@pytest.mark.parametrize("line", FUNCTIONS)
def test_functions_have_what_commands_have(line: str) -> None:
    functions, only_in_command = FUNCTIONS[line]
    parameters = {name for function in functions for name in inspect.signature(function).parameters}
    options = parsed(line).keys() - only_in_command
    assert {name for name in options if not {name, RENAMED.get(name)} & parameters} == set()


CALLED: dict[str, Callable[..., Any]] = {
    "train": train.train, "train --seeds": train_seeds, "train --folds": train_folds, "evaluate": elmo_tasks.evaluate,
    "archive": archive, "pretrain": pretrain, "compare": compare, "errors": errors,
    "import-allennlp": import_allennlp, "sample-data": write_sample_data,
}  # fmt: skip
CALLING = {line: shlex.split(line) for line in (*DEFAULTS, *GIVEN) if line.split()[0] in CALLED}


def plain(value: Any) -> Any:
    """A value in a form in which it is the same before and after it is handed over."""
    if isinstance(value, Mapping):
        return list(value.items())
    return [*value] if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize("words", CALLING.values(), ids=CALLING)
def test_a_command_hands_its_options_to_its_function(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").touch()  # the packages to include
    (tmp_path / "q.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    command, *_ = words
    words = [word for word in words if word != "--dry-run" or command not in ("train", "pretrain")]
    repeated = [word for word in words if command == "train" and word in ("--seeds", "--folds")]
    possible = {"cuda": "cpu", "f": "f.tar.gz"}  # on this machine, and of an archive
    words = [possible.get(word, word) for word in words]
    function = CALLED[" ".join([command, *repeated])]
    called = Mock(side_effect=ElmoTasksError("was called"))
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
    assert {line.split()[0] for line in DEFAULTS} == set(COMMANDS)


@pytest.mark.parametrize("line", GIVEN)
def test_what_options_change(line: str) -> None:
    (defaults,) = (each for key, each in DEFAULTS.items() if key.split()[0] == line.split()[0])
    assert parsed(line) == {**defaults, **GIVEN[line]}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_options_are_refused_with_a_reason(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        parsed(line)
    assert exit.value.code == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert message.startswith("error: ")
    assert WRONG[line] in message
    assert hint == f"For help: elmo-tasks {line.split()[0]} --help"


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


@pytest.mark.parametrize("line", [each for each in DEFAULTS if "device" in DEFAULTS[each]])
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


NUMERIC = [
    (command, action.option_strings[-1])
    for command in COMMANDS
    for action in cli.make_parser([command])._subparsers._group_actions[0].choices[command]._actions  # type: ignore
    if isinstance(action.type, Number) or action.type in NUMBERS
]


def test_every_option_that_takes_a_number_is_one_of_those_whose_bounds_are_checked() -> None:
    """An option takes a number if its help shows one: as what it takes, or as its default."""
    shown = set()
    for command in COMMANDS:
        for action in cli.make_parser([command])._subparsers._group_actions[0].choices[command]._actions:  # type: ignore
            words = {*str(action.metavar).replace("/", ",").split(",")}
            is_number = isinstance(action.default, int) and not isinstance(action.default, bool)
            if words & {"N", "K", "S", "SEEDS", "LAYERS"} or (is_number and action.option_strings):
                shown.add((command, action.option_strings[-1]))
    without_value = {(command, option) for command, option in shown if option in ("--verbose", "--quiet")}
    assert len(shown - without_value) > 30
    assert shown - without_value == {*NUMERIC}


@pytest.mark.parametrize(("command", "option"), NUMERIC)
@pytest.mark.parametrize("value", ["-1", "x", "1.5e", "", "9" * 40, "-1,2", "3/2", "nan", "٣"])
def test_numbers_out_of_bounds_are_refused(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main([command, "a", "b", f"{option}={value}"])
    assert exit.value.code == 2
    error = capsys.readouterr().err
    assert re.match(
        rf"error: argument (-\w/|--[\w-]+/)*{option}(/\S+)?: '{re.escape(value)}'( is not |; expected )", error
    )


def test_positional_arguments_may_follow_options() -> None:
    for line in ("evaluate A B --device cpu D", "evaluate A --device cpu B D", "evaluate --device cpu A B D"):
        found = parsed(line)
        assert [*found["run_paths"], *found["data"]] == ["A", "B", "D"]
        assert found["device"] == "cpu"
    for line in ("similarity w --device cpu s t", "similarity w s --device cpu t", "similarity --device cpu w s t"):
        assert (parsed(line)["word"], parsed(line)["sentences"]) == ("w", ["s", "t"])
    for line in ("predict A --set a=b in.txt", "predict --set a=b A in.txt"):
        assert (parsed(line)["run_paths"], parsed(line)["input"]) == (["A"], ["in.txt"])
    for line, method in (
        ("--explain", "integrated"),
        ("--explain gradient", "gradient"),
        ("--explain=gradient", "gradient"),
    ):
        found = parsed(f"predict A {line} in.txt")
        assert (found["explain"], found["run_paths"], found["input"]) == (method, ["A"], ["in.txt"])
    assert parsed("compare A --json B")["paths"] == ["A", "B"]
    assert parsed("archive A --force f.tar.gz")["file"] == "f.tar.gz"


def test_all_commands_are_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("command", ["embed", "neighbors", "perplexity", "predict"])
def test_commands_that_read_text_have_the_same_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--tokenizer NAME how raw text is split into sentences and tokens: treebank (English), unicode" in text
    assert "--tokenized the text is already tokenized: one sentence per line, with spaces between tokens" in text


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


def test_an_unknown_tokenizer(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["embed", "in.txt", "--output", "out.npz", "--tokenizer", "unicod"]) == 2
    assert "the tokenizer 'unicod': unknown type; expected one of regex, treebank, unicode" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("train ner_conll03", "elmo-tasks train ner_conll03 -s runs/ner_conll03 --resume"),
        ("train cpu/sst5 --force --seeds 1,2", "elmo-tasks train cpu/sst5 --seeds 1,2 -s runs/cpu/sst5 --resume"),
        ("train my.jsonnet -s 'a b' --set x.y=1 --resume", "elmo-tasks train my.jsonnet -s 'a b' --set x.y=1 --resume"),
        (
            "pretrain bilm/tiny --from default",
            "elmo-tasks pretrain bilm/tiny --from default -s runs/bilm/tiny --resume",
        ),
        ("pretrain bilm/tiny -s x --forc", "elmo-tasks pretrain bilm/tiny -s x --resume"),
        ("study table2 --jobs 2", "elmo-tasks study table2 --jobs 2 -s runs/studies/table2"),
        ("study s.jsonnet -s there", "elmo-tasks study s.jsonnet -s there"),
        ("tune tune_quick", "elmo-tasks tune tune_quick -s runs/studies/tune_quick"),
        ("train ner_conll03 --dry-run", ""),
        ("study --list", ""),
        ("evaluate runs/ner data.txt", ""),
    ],
)
def test_an_interrupted_command_says_how_to_go_on(
    words: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: argparse.Namespace) -> None:
        raise KeyboardInterrupt

    name, *_ = words.split()
    monkeypatch.setitem(COMMANDS, name, COMMANDS[name]._replace(run=interrupted))
    assert main(shlex.split(words)) == 130
    assert capsys.readouterr().err == (f"interrupted; go on with: {command}\n" if command else "interrupted\n")


def test_one_of_several_processes_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", "bilm/tiny", "-s", "x"]
    arguments = make_parser(["pretrain"]).parse_args(words)
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, expected in (
        ("0", "torchrun --nproc-per-node 2 -m elmo_tasks pretrain bilm/tiny -s x --resume"),
        ("1", None),
    ):
        monkeypatch.setenv("RANK", rank)
        assert command_to_go_on(words, arguments) == expected
