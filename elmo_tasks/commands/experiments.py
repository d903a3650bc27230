"""The commands that train, evaluate and use task models."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands.arguments import (
    add_config_and_folder,
    add_config_arguments,
    add_flag,
    add_run_arguments,
    add_run_path,
    add_training_arguments,
    default_run_folder,
    device_overrides,
    integers,
    run_overrides,
)
from elmo_tasks.commands.command import Command
from elmo_tasks.console import binary_output, is_main_process, print_metrics, print_training_metrics
from elmo_tasks.errors import ElmoTasksError

if TYPE_CHECKING:
    from elmo_tasks.config import Config


def _add_train(parser: argparse.ArgumentParser) -> None:
    add_config_and_folder(parser, "the experiment", "the run")
    add_config_arguments(parser)
    parser.add_argument(
        "--seeds",
        type=integers,
        default=(),
        metavar="N,N",
        help="train once per seed; print mean and standard deviation",
    )
    add_flag(parser, "--self-contained", "copy the files of the biLM into the run's folder")
    add_training_arguments(parser)
    add_flag(parser, "--dry-run", "check and print the config without reading any data")


def _train(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import include_packages
    from elmo_tasks.experiment import ExperimentConfig, train, train_seeds

    include_packages(arguments.include_package)
    if arguments.dry_run:
        _print_config(arguments, ExperimentConfig)
        return
    folder = arguments.run_folder or default_run_folder(arguments.config)
    settings: dict[str, Any] = {name: getattr(arguments, name) for name in ("resume", "force", "self_contained")}
    settings |= {"overrides": arguments.set, "variables": dict(arguments.ext_var)}
    if arguments.seeds:
        metrics = train_seeds(arguments.config, folder, arguments.seeds, **settings)
    else:
        metrics = train(arguments.config, folder, **settings)
    if is_main_process():
        print_training_metrics(metrics)


def _print_config(arguments: argparse.Namespace, kind: type[Config]) -> None:
    from elmo_tasks.config import describe, load_config

    print(describe(load_config(arguments.config, kind, arguments.set, dict(arguments.ext_var))), end="")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument(
        "data", metavar="DATA", help="a file or hub data set with gold labels that the run's reader can read"
    )
    parser.add_argument(
        "--predictions", metavar="FILE", help="write each example with its prediction to this file, as JSON lines"
    )
    parser.add_argument("--output", metavar="FILE", help="write the metrics to this file, as JSON")
    add_flag(parser, "--json", "print the metrics as JSON instead of a table")


def _evaluate(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import include_packages
    from elmo_tasks.experiment import evaluate
    from elmo_tasks.files import write_json

    include_packages(arguments.include_package)
    metrics = evaluate(
        arguments.run_path,
        arguments.data,
        predictions=arguments.predictions,
        batch_tokens=arguments.batch_tokens,
        overrides=run_overrides(arguments),
    )
    if not is_main_process():
        return
    if arguments.output:
        write_json(arguments.output, metrics)
    if arguments.json:
        print(json.dumps(metrics, indent=2, ensure_ascii=False))
    else:
        print_metrics(metrics, title=arguments.data)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("input", metavar="INPUT", help="the input file, compressed or not, or - for standard input")
    parser.add_argument(
        "--format",
        choices=("auto", "text", "jsonl"),
        default="auto",
        help="text: one paragraph per line; jsonl: one JSON object per line; auto: decide by the first "
        "line that is not blank (default: auto)",
    )
    parser.add_argument("--output", metavar="FILE", help="write the results to this file instead of standard output")
    parser.add_argument(
        "--predicates", metavar="RUN", help="for semantic roles: the run of a tagger that finds the predicates"
    )


def _predict(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import include_packages
    from elmo_tasks.experiment import load_predictor
    from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS
    from elmo_tasks.predictors.inputs import read_inputs, source_name

    include_packages(arguments.include_package)
    batch_tokens = arguments.batch_tokens or DEFAULT_BATCH_TOKENS
    predicates = None
    if arguments.predicates:
        predicates = load_predictor(
            arguments.predicates, overrides=device_overrides(arguments), batch_tokens=batch_tokens
        )
    predictor = load_predictor(
        arguments.run_path, overrides=run_overrides(arguments), batch_tokens=batch_tokens, predicates=predicates
    )
    inputs = read_inputs(arguments.input, arguments.format)
    with binary_output(arguments.output) as stream:
        for result in predictor.predict(inputs, source=source_name(arguments.input)):
            stream.write((json.dumps(result, ensure_ascii=False) + "\n").encode())


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", metavar="CONFIG", nargs="?", help="the Jsonnet or JSON file (not needed for --schema)"
    )
    add_config_arguments(parser)
    add_flag(parser, "--schema", "print the JSON schema of all configs, for use in editors")


def _config(arguments: argparse.Namespace) -> None:
    if arguments.config is None and not arguments.schema:
        raise ElmoTasksError("no config given; give a Jsonnet or JSON file, or --schema")
    from elmo_tasks.config import config_schema, include_packages
    from elmo_tasks.config.values import evaluate
    from elmo_tasks.experiment import ExperimentConfig
    from elmo_tasks.pretraining.config import PretrainingConfig

    include_packages(arguments.include_package)
    if arguments.schema:
        print(json.dumps(config_schema(ExperimentConfig, PretrainingConfig), indent=2, ensure_ascii=False))
        return
    is_pretraining = "corpus" in evaluate(arguments.config, dict(arguments.ext_var))
    _print_config(arguments, PretrainingConfig if is_pretraining else ExperimentConfig)


def _add_archive(parser: argparse.ArgumentParser) -> None:
    add_run_path(parser)
    parser.add_argument("file", metavar="FILE.tar.gz", help="the archive to write")
    add_flag(parser, "--without-bilm", "leave the biLM out; store only its path and hash")


def _archive(arguments: argparse.Namespace) -> None:
    from elmo_tasks.experiment import archive

    archive(arguments.run_path, arguments.file, self_contained=not arguments.without_bilm)
    print(arguments.file)


COMMANDS = {
    "train": Command(
        "train a model and evaluate it on the test set",
        "elmo-tasks train configs/ner_conll03.jsonnet -s runs/ner --set model.dropout=0.3",
        _add_train,
        _train,
    ),
    "evaluate": Command(
        "score a trained run on data with gold labels",
        "elmo-tasks evaluate runs/ner eng.testb",
        _add_evaluate,
        _evaluate,
    ),
    "predict": Command(
        "apply a trained run to raw text or JSON lines",
        "echo 'Alan Turing worked at Bletchley Park.' | elmo-tasks predict runs/ner -",
        _add_predict,
        _predict,
    ),
    "config": Command(
        "check a config and print all of its values, or print the JSON schema of configs",
        "elmo-tasks config configs/ner_conll03.jsonnet --set random_seed=2",
        _add_config,
        _config,
    ),
    "archive": Command(
        "pack a run into a single file", "elmo-tasks archive runs/ner ner.tar.gz", _add_archive, _archive
    ),
}
