"""The commands that train, evaluate and use task models."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands import numbers, options
from elmo_tasks.commands.console import (
    print_confusion,
    print_json,
    print_label_scores,
    print_metrics,
    print_summaries,
    print_training_metrics,
)
from elmo_tasks.commands.prediction import TOOLS
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.engines.commands import add_inputs, add_parts, make_parts, writes_parts
from elmo_tasks.files.paths import HTML, JSON_LINES, TABLES, check_ending, check_output, is_table
from elmo_tasks.progress import is_main_process

if TYPE_CHECKING:
    from elmo_tasks.config import Config

logger = logging.getLogger(__name__)

_TRAINING = ("resume", "force", "self_contained", "predictions")  # arguments of `runs.train.train`


def add_train(parser: argparse.ArgumentParser) -> None:
    options.add_config_and_folder(parser, "the experiment", "the run")
    options.add_from(
        parser,
        "RUN",
        "start from the weights of this run (a folder, an archive or an installed model), as far as they fit: rows of "
        "words, characters and labels are copied by name; with --resume, a run that has begun continues with its own "
        "state",
    )
    options.add_config_arguments(parser)
    repeated = parser.add_mutually_exclusive_group()
    options.add_seeds(
        repeated,
        "train once per seed, such as 1-3 or 1,2,5, and print the mean and standard deviation. 3 means seed 3, not "
        "three seeds",
    )
    repeated.add_argument(
        "--folds",
        type=numbers.at_least_two,
        metavar="K",
        help="cross-validation: train K times, each time without one part of the training data, which is then "
        "predicted, and print the score of all predictions together. Documents are not split where they are known",
    )
    about = "write the best epoch's predictions for this data to the run's folder, for `compare` and `errors`"
    options.add_repeated(parser, "--predictions", f"{about}; can be repeated", choices=("validation", "test"))
    options.add_flag(
        parser, "--self-contained", "copy the files of the biLM and of the transformer into the run's folder"
    )
    options.add_training_arguments(parser)
    options.add_flag(parser, "--dry-run", "check and print the config without reading any data")


def run_train(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.repeats.repeats import train_folds, train_seeds
    from elmo_tasks.runs.experiment_config import ExperimentConfig
    from elmo_tasks.runs.train import train

    if arguments.dry_run:
        _print_config(arguments, ExperimentConfig)
        return
    folder = arguments.run_folder or options.default_run_folder(arguments.config)
    settings: dict[str, Any] = {name: getattr(arguments, name) for name in _TRAINING}
    settings |= {"overrides": arguments.set, "variables": dict(arguments.ext_var), "from_run": arguments.start_from}
    if arguments.seeds:
        if len(arguments.seeds) == 1 and (seed := arguments.seeds[0]) > 1:
            logger.info("seed %d only; for %d seeds use --seeds 1-%d", seed, seed, seed)
        metrics = train_seeds(arguments.config, folder, arguments.seeds, **settings)
    elif arguments.folds:
        metrics = train_folds(arguments.config, folder, arguments.folds, **settings)
    else:
        metrics = train(arguments.config, folder, **settings)
    if is_main_process():
        print_training_metrics(metrics)
        first = f"seed_{arguments.seeds[0]}" if arguments.seeds else "fold_1" if arguments.folds else ""
        _say_what_is_next(Path(folder, first), arguments.include_package)


def _say_what_is_next(folder: Path, packages: Sequence[str]) -> None:
    """Says on standard error where a run is, and which commands use it."""
    import shlex

    from elmo_tasks.config import load_config
    from elmo_tasks.data_readers.sources import path_list
    from elmo_tasks.runs.experiment_config import ExperimentConfig
    from elmo_tasks.tasks import PairRegression, Reading, SemanticRoles, TextPairs

    config = load_config(folder / "config.json", ExperimentConfig)
    data = path_list(config.test_data_path or config.validation_data_path or "DATA") or ()
    include = [word for name in packages for word in ("--include-package", name)]
    inputs = ["inputs.jsonl"] if isinstance(config.model.task, (TextPairs, PairRegression, Reading)) else ["-"]
    inputs += ["--predicates", "RUN"] if isinstance(config.model.task, SemanticRoles) else []
    logger.info("the run is in %s; next steps:", folder)
    plot = ["plot", folder, "--output", f"{folder}.svg"]
    for words in (["evaluate", folder, *data], ["predict", folder, *inputs], plot):
        logger.info("  %s", shlex.join(["elmo-tasks", *map(str, words), *include]))


def _print_config(arguments: argparse.Namespace, kind: type[Config]) -> None:
    from elmo_tasks.config import describe, load_config

    print(describe(load_config(arguments.config, kind, arguments.set, dict(arguments.ext_var))), end="")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    options.add_run_arguments(parser)
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="+",
        help="a file or hub data set with gold labels that the run's reader can read; several are scored together",
    )
    parser.add_argument(
        "--predictions", metavar="FILE", help="write each example with its prediction to this file, as JSON lines"
    )
    options.add_unknown_labels(parser)
    options.add_flag(parser, "--confusion", "also print the confusion matrix and the scores of each label")
    options.add_result(parser, "write the metrics", "the metrics as JSON instead of a table")


def run_evaluate(arguments: argparse.Namespace) -> None:
    from elmo_tasks.runs.evaluate import evaluate

    check_ending(arguments.predictions, JSON_LINES)
    check_output(arguments.predictions, force=arguments.force, stream=True)
    options.check_result(arguments)
    runs, data = _runs_and_data([*arguments.run_paths, *arguments.data])
    metrics = evaluate(
        runs,
        data,
        predictions=arguments.predictions,
        confusion=arguments.confusion,
        batch_tokens=arguments.batch_tokens,
        unknown_labels=arguments.unknown_labels,
        overrides=options.run_overrides(arguments),
    )
    if is_main_process():
        options.show_result(arguments, metrics, lambda: _print_evaluation(metrics, " ".join(data)))


def _print_evaluation(metrics: dict[str, Any], title: str) -> None:
    confusion, scores = metrics.pop("confusion", None), metrics.pop("label_scores", None)
    print_metrics(metrics, title=title)
    if confusion:
        print_confusion(confusion, title=title)
        print_label_scores(scores, title=title)


def _runs_and_data(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first path and those after it that are runs, and the others, at least one."""
    from elmo_tasks.runs.archive import is_run

    number = 1
    while number < len(paths) - 1 and is_run(paths[number]):
        number += 1
    return list(paths[:number]), list(paths[number:])


def add_predict(parser: argparse.ArgumentParser) -> None:
    options.add_run_arguments(parser)
    add_inputs(parser, "the input file")
    _add_formats(parser)
    options.add_choice(
        parser,
        "--on-error",
        ("fail", "skip", "record"),
        "what to do with an unusable input. fail: stop with an error; output files keep the results so far. skip: "
        "continue, and list the skipped inputs at the end. record: in a folder, write the error to its column",
    )
    options.add_flag(
        parser, "--explain", "also show how much each token counts for each result, by integrated gradients"
    )
    options.add_flag(
        parser,
        "--resolve",
        "for coreference: print the text with each mention replaced by the first name of its chain; JSON results have "
        "it as `resolved`",
    )
    options.add_flag(parser, "--uncalibrated", "give the model's own probabilities, also of a run that is calibrated")
    options.add_tokenizer_arguments(parser, "the tokenizer of the run's config")
    parser.add_argument(
        "--output",
        metavar="FILE|DIR/",
        help="write the results to this file, instead of printing them: JSON lines, or a table if it ends in .csv, "
        ".tsv, .xlsx or .parquet; or, with a slash at the end, to a folder of Parquet files",
    )
    parser.add_argument("--html", metavar="FILE", help="write the results to this HTML page, instead of printing them")
    options.add_force(parser)
    options.add_flag(parser, "--json", "print JSON lines on a terminal too, instead of coloured text")
    about = "for semantic roles: the run of a tagger that finds the predicates (default: that of an installed model)"
    parser.add_argument("--predicates", metavar="RUN", help=about)
    add_parts(parser)


def _add_formats(parser: argparse.ArgumentParser) -> None:
    options.add_choice(
        parser,
        "--format",
        ("auto", "text", "jsonl", "allennlp", "reader"),
        "text: one paragraph per line; jsonl: one JSON object per line; auto: decide by the first line that is not "
        "blank, and refuse tables, columns and other data; allennlp: the same, with the keys of AllenNLP's "
        "predictors; reader: data in the format of the run's reader, with or without gold labels",
    )
    options.add_choice(
        parser,
        "--output-format",
        ("jsonl", "reader", *TOOLS),
        "jsonl: one JSON object per result; reader: with --format reader, columns of tokens (CoNLL) with one more, the "
        "predictions; the others: for annotation tools, the texts of a tool's export or of plain text with predictions "
        "to correct (brat: --output is a folder)",
    )
    about = "for annotation tools: only the N texts that the model is least certain of, the least certain first"
    parser.add_argument("--least-certain", type=numbers.positive, metavar="N", help=about)


def run_predict(arguments: argparse.Namespace) -> None:
    from elmo_tasks.commands.prediction import predict_for_tool, predict_stream
    from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
    from elmo_tasks.extras.engines.units import find_files
    from elmo_tasks.extras.tables.sheets import SHEETS
    from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS
    from elmo_tasks.runs.load import load_predictor, load_run, run_predictor

    _check_formats(arguments)
    options.refuse_torchrun("predict")
    if arguments.uncalibrated:
        arguments.set = [*arguments.set, "calibrated=false"]
    arguments.run_paths, arguments.input = _runs_and_data([*arguments.run_paths, *arguments.input])
    is_for_tool = arguments.output_format in TOOLS
    if not is_for_tool and writes_parts(arguments, in_one_table=is_table(arguments.output)):
        _predict_parts(arguments)
        return
    several = len(arguments.input) > 1 or (Path(arguments.input[0]).is_dir() and not is_for_tool)
    arguments.files = find_files(arguments.input) if several else {}
    arguments.input = arguments.input[0]
    if is_for_tool or (arguments.format == "auto" and arguments.input.lower().endswith(SHEETS)):
        arguments.format = "reader"
    if several and arguments.format == "reader":
        if is_for_tool:
            raise ElmoTasksError(
                f"--output-format {arguments.output_format}: reads one file or folder; got several files"
            )
        raise ElmoTasksError("--format reader reads one file into a table; got a folder or several files")
    if is_for_tool:
        check_ending(arguments.output, TOOLS[arguments.output_format])
    elif arguments.output_format == "jsonl":
        check_ending(arguments.output, (*JSON_LINES, *TABLES), f"Tables end in {', '.join(TABLES)}, and folders in /")
    check_ending(arguments.html, HTML)
    for output in (arguments.html,) if arguments.output_format == "brat" else (arguments.output, arguments.html):
        check_output(output, force=arguments.force, stream=True)
    batch_tokens = arguments.batch_tokens or DEFAULT_BATCH_TOKENS
    predicates = None
    if arguments.predicates:
        predicates = load_predictor(
            arguments.predicates, overrides=options.device_overrides(arguments), batch_tokens=batch_tokens
        )
    overrides = [*options.tokenizer_overrides(arguments), *options.run_overrides(arguments)]
    if arguments.format == "reader":
        run = load_run(arguments.run_paths, overrides=overrides)
        predictor = run_predictor(run, batch_tokens=batch_tokens, predicates=predicates)
        (predict_for_tool if is_for_tool else predict_stream)(predictor, arguments, run.reader)
        return
    predictor = load_predictor(
        arguments.run_paths, overrides=overrides, batch_tokens=batch_tokens, predicates=predicates
    )
    predict_stream(AllenNlpPredictor(predictor) if arguments.format == "allennlp" else predictor, arguments)


def _check_formats(arguments: argparse.Namespace) -> None:
    """Raises an `ElmoTasksError` for options of `predict` that do not go together."""
    if arguments.explain and {"gradient", "integrated"} & {*arguments.run_paths, *arguments.input}:
        raise ElmoTasksError("--explain takes no value: integrated gradients are the only method")
    if arguments.output_format == "reader" and arguments.format != "reader":
        raise ElmoTasksError("--output-format reader adds predictions to the data; expected --format reader as well")
    if arguments.format == "allennlp" and (arguments.html or is_table(arguments.output)):
        raise ElmoTasksError("--html and tables cannot show AllenNLP's keys; expected no --format allennlp")
    if arguments.explain and (other := arguments.output_format) != "jsonl":
        raise ElmoTasksError(f"--explain adds to results, not to data; expected no --output-format {other}")
    if arguments.resolve and arguments.format in ("allennlp", "reader"):
        raise ElmoTasksError(f"--resolve is for text; expected no --format {arguments.format}")
    if arguments.least_certain and arguments.output_format not in TOOLS:
        raise ElmoTasksError(f"--least-certain is for annotation tools; expected --output-format {', '.join(TOOLS)}")
    given = {"html": arguments.html, "resolve": arguments.resolve, "format": arguments.format != "auto"}
    others = [name for name, is_given in given.items() if is_given]
    if arguments.output_format in TOOLS and others:
        raise ElmoTasksError(f"--output-format {arguments.output_format}: expected no --{others[0]}")
    is_new = arguments.output and (arguments.force or not Path(arguments.output).exists())
    if arguments.output_format == "brat" and not is_new:
        raise ElmoTasksError("--output-format brat: expected a new folder as --output, or --force to write into one")


def _predict_parts(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.engines.table_functions import Predict
    from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS

    given = {"--html": arguments.html, "--resolve": arguments.resolve}
    given |= {"--on-error skip": arguments.on_error == "skip"}
    given |= {f"--format {arguments.format}": arguments.format not in ("auto", "text", "jsonl")}
    if other := [name for name, value in given.items() if value]:
        raise ElmoTasksError(f"{other[0]}: not for an output folder")
    predict = Predict(
        run=arguments.run_paths,
        predicates=arguments.predicates,
        explain=arguments.explain,
        device=arguments.device,
        batch_tokens=arguments.batch_tokens or DEFAULT_BATCH_TOKENS,
        overrides=[*options.tokenizer_overrides(arguments), *arguments.set],
        on_error=arguments.on_error,
    )
    make_parts(arguments, predict, tokenized=arguments.tokenized)


def add_config(parser: argparse.ArgumentParser) -> None:
    about = "the Jsonnet or JSON file, or the name of a config in the package (not needed for --list and --schema)"
    options.add_config_path(parser, about, nargs="?")
    options.add_config_arguments(parser)
    action = parser.add_mutually_exclusive_group()
    options.add_flag(action, "--list", "list the configs in the package")
    action.add_argument(
        "--copy",
        metavar="FILE",
        help="copy a config in the package to this file, to edit it there; the copy works in any folder",
    )
    options.add_force(parser)
    options.add_flag(action, "--schema", "print the JSON schema of all configs, for use in editors")


def run_config(arguments: argparse.Namespace) -> None:
    if arguments.list:
        from elmo_tasks.config.packaged import CPU_RULE, packaged_configs

        print_summaries(packaged_configs())
        print(f"\n{CPU_RULE}", file=sys.stderr)  # programs may read the list
        return
    if arguments.config is None and not arguments.schema:
        raise ElmoTasksError("no config given; give a file, a name of --list, or --schema")
    if arguments.copy:
        if arguments.set or arguments.ext_var:
            raise ElmoTasksError("--copy copies the file unchanged; expected no --set or --ext-var")
        _copy_config(arguments.config, arguments.copy, force=arguments.force)
        return
    from elmo_tasks.config import config_schema
    from elmo_tasks.config.jsonnet import evaluate
    from elmo_tasks.extras.pretraining.pretraining_config import PretrainingConfig
    from elmo_tasks.runs.experiment_config import ExperimentConfig

    if arguments.schema:
        print_json(config_schema(ExperimentConfig, PretrainingConfig))
        return
    is_pretraining = "corpus" in evaluate(arguments.config, dict(arguments.ext_var), undefined={})
    _print_config(arguments, PretrainingConfig if is_pretraining else ExperimentConfig)


def _copy_config(name: str, target: str, *, force: bool) -> None:
    from elmo_tasks.config.packaged import portable_text
    from elmo_tasks.files.atomic import atomic_write

    content = portable_text(name).encode()
    check_ending(target, (".jsonnet",))
    check_output(target, force=force, stream=True)
    with atomic_write(target) as stream:
        stream.write(content)
    print(target)


def add_archive(parser: argparse.ArgumentParser) -> None:
    options.add_run_path(parser)
    parser.add_argument("file", metavar="FILE.tar.gz", help="the archive to write")
    options.add_force(parser)
    options.add_flag(
        parser,
        "--without-bilm",
        "leave the biLM and the transformer out and store their hashes; those who use the archive say where they are "
        "with --set model.embedder.elmo.bilm=DIR (not needed for the default biLM) and "
        "--set model.embedder.transformer.model=DIR",
    )


def run_archive(arguments: argparse.Namespace) -> None:
    from elmo_tasks.runs.archive import archive

    check_output(arguments.file, force=arguments.force, packed=True)
    if not arguments.file.endswith((".tar.gz", ".tgz")):
        raise ElmoTasksError(f"{arguments.file}: an archive is a .tar.gz file; expected a name with that ending")
    archive(arguments.run_path, arguments.file, self_contained=not arguments.without_bilm)
    print(arguments.file)
