"""The command that searches hyperparameters."""

from __future__ import annotations

import argparse
import importlib.util
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_tasks.commands.arguments import add_config_arguments, add_flag, refuse_torchrun
from elmo_tasks.commands.console import print_table
from elmo_tasks.commands.studies import command_line, print_summaries
from elmo_tasks.errors import ElmoTasksError

if TYPE_CHECKING:
    from elmo_tasks.studies.searches import Search

logger = logging.getLogger(__name__)


def add_tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "search", metavar="FILE", nargs="?", help="the Jsonnet or JSON file, or the name of a search in the package"
    )
    parser.add_argument(
        "-s",
        "--search-folder",
        metavar="DIR",
        help="the folder of its trials (default: runs/studies/<name of the file>)",
    )
    add_config_arguments(parser, "search", "trials=10 or changes.trainer.num_epochs=1")
    add_flag(parser, "--dry-run", "check everything, and print the space")
    add_flag(parser, "--list", "list the searches in the package")


def run_tune(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config.packaged import packaged_searches

    if arguments.list:
        print_summaries(packaged_searches())
        return
    if arguments.search is None:
        raise ElmoTasksError("no search given; give a file or a name of --list")
    refuse_torchrun("tune")
    from elmo_tasks.config import include_packages
    from elmo_tasks.studies.searches import Search

    include_packages(arguments.include_package)
    search = Search.load(arguments.search, arguments.set, dict(arguments.ext_var))
    if arguments.dry_run:
        _print_space(search)
        return
    if importlib.util.find_spec("optuna") is None:
        raise ElmoTasksError("a search needs Optuna, which is not installed: pip install 'elmo-tasks[tune]'")
    from elmo_tasks.studies.search_results import SearchResults, write_search_report
    from elmo_tasks.studies.search_trials import run_search

    path = Path(arguments.search_folder or Path("runs", "studies", Path(arguments.search).stem))
    run_search(path, search, command=command_line("tune", arguments.search, path, arguments))
    results = SearchResults.read(path)
    for table in (results.trial_table(), results.expected_table()):
        print_table(table.title, table.columns, table.rows)
    print(results.record.train_command(results.best()))
    for written in (path / "best.json", *write_search_report(path)):
        logger.info("%s", written)


def _print_space(search: Search) -> None:
    rows = [
        [
            each.key,
            "choices" if each.dimension.choices else "whole numbers" if each.whole else "numbers",
            str(each.dimension),
        ]
        for each in search.parameters
    ]
    print_table(search.config.title, ("key", "kind", "values"), rows)
    metric = search.experiment.trainer.validation_metric
    print(f"{search.config.trials} trials of {search.config_file}, by the validation metric {metric}")
