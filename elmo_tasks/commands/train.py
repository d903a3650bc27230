"""The commands that train and evaluate."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks import hooks
from elmo_tasks.commands import options
from elmo_tasks.commands.configs import print_config
from elmo_tasks.commands.console import print_confusion, print_label_scores, print_metrics, print_training_metrics
from elmo_tasks.files.paths import JSON_LINES, check_ending, check_output
from elmo_tasks.progress import is_main_process

if TYPE_CHECKING:
    from elmo_tasks.runs.folder import RunFolder

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
        type=options.positive,
        metavar="K",
        help="cross-validation: also train K models, each without one part of the training data, which it then "
        "predicts, so that the run has a score of predictions of data that was not seen. The configs small/... do it "
        "by themselves, with 5 folds, for up to 2,000 examples without validation data; 1 holds out a fifth instead. "
        "Documents are not split where they are known",
    )
    about = "write the best epoch's predictions for this data to the run's folder, for `compare` and `errors`"
    options.add_repeated(parser, "--predictions", f"{about}; can be repeated", choices=("validation", "test"))
    options.add_flag(
        parser, "--self-contained", "copy the files of the biLM and of the transformer into the run's folder"
    )
    options.add_training_arguments(parser)
    options.add_flag(parser, "--dry-run", "check and print the config without reading any data")


def run_train(arguments: argparse.Namespace) -> None:
    from elmo_tasks.runs.experiment_config import ExperimentConfig
    from elmo_tasks.runs.folder import RunFolder
    from elmo_tasks.runs.train import train

    if arguments.dry_run:
        print_config(arguments, ExperimentConfig)
        return
    folder = arguments.run_folder or options.default_run_folder(arguments.config)
    settings: dict[str, Any] = {name: getattr(arguments, name) for name in _TRAINING}
    settings |= {"overrides": arguments.set, "variables": dict(arguments.ext_var), "from_run": arguments.start_from}
    if arguments.seeds:
        if len(arguments.seeds) == 1 and (seed := arguments.seeds[0]) > 1:
            logger.info("seed %d only; for %d seeds use --seeds 1-%d", seed, seed, seed)
        train_seeds = hooks.required("repeated_training", "seeds", "--seeds")
        metrics = train_seeds(arguments.config, folder, arguments.seeds, **settings)
    else:
        metrics = train(arguments.config, folder, folds=arguments.folds, **settings)
    if is_main_process():
        first_run = RunFolder(folder)
        if arguments.seeds:
            hooks.required("repeated_training", "print_seeds")(metrics)
            first_run = RunFolder(Path(folder) / f"seed_{arguments.seeds[0]}")
        elif first_run.cross_validation.is_file():
            hooks.required("repeated_training", "print_folds")(folder)
        else:
            print_training_metrics(metrics)
        _say_what_is_next(first_run, arguments.include_package)


def _say_what_is_next(run: RunFolder, packages: Sequence[str]) -> None:
    """Says on standard error where a run is, and which commands use it."""
    import shlex

    from elmo_tasks.commands.command import COMMANDS
    from elmo_tasks.config import load_config
    from elmo_tasks.data_readers.sources import path_list
    from elmo_tasks.runs.experiment_config import ExperimentConfig
    from elmo_tasks.tasks import PairRegression, Reading, SemanticRoles, TextPairs

    folder, config = run.path, load_config(run.config, ExperimentConfig)
    data = path_list(config.test_data_path or config.validation_data_path or "DATA") or ()
    include = [word for name in packages for word in ("--include-package", name)]
    inputs = ["inputs.jsonl"] if isinstance(config.model.task, (TextPairs, PairRegression, Reading)) else ["-"]
    inputs += ["--predicates", "RUN"] if isinstance(config.model.task, SemanticRoles) else []
    ending = Path(str(config.train_data_path)).suffix.lower()
    if ending in hooks.names("result_file"):  # a table comes back as one
        inputs = [f"new{ending}", "--format", "reader", "--output", f"predicted{ending}"]
    logger.info("the run is in %s; next steps:", folder)
    lines = [["predict", folder, *inputs], ["plot", folder, "--output", f"{folder}.svg"]]
    if run.report.is_file():
        lines[1] = ["errors", folder]
        logger.info("  %s is a page about its score", run.report)
    else:
        lines.insert(0, ["evaluate", folder, *data])
    for words in lines:
        if words[0] in COMMANDS:
            logger.info("  %s", shlex.join(["elmo-tasks", *map(str, words), *include]))


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
    runs, data = options.runs_and_data([*arguments.run_paths, *arguments.data])
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

        def show() -> None:
            title = " ".join(data)
            confusion, scores = metrics.pop("confusion", None), metrics.pop("label_scores", None)
            learned = metrics.pop("learned", {})
            print_metrics(metrics, title=title)
            if len(learned) > 1:
                print_metrics(learned, title=f"{title}, examples that were learned from")
            if confusion:
                print_confusion(confusion, title=title)
                print_label_scores(scores, title=title)

        options.show_result(arguments, metrics, show)
