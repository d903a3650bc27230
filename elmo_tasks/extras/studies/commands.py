"""The commands that train many runs, studies and searches of hyperparameters, and write their reports."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_summaries, print_table
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.files.paths import SEARCH

if TYPE_CHECKING:
    from elmo_tasks.extras.studies.study_runs import StudyFolder

logger = logging.getLogger(__name__)


def _add_file_and_folder(parser: argparse.ArgumentParser, kind: str, contents: str, name: str) -> None:
    about = f"the Jsonnet or JSON file, or the name of a {kind} in the package"
    parser.add_argument(kind, metavar="FILE", nargs="?", help=about)
    about = f"the folder of its {contents} (default: runs/studies/<name of the {name}>)"
    parser.add_argument("-s", f"--{kind}-folder", metavar="DIR", help=about)


def add_study(parser: argparse.ArgumentParser) -> None:
    _add_file_and_folder(parser, "study", "runs", "study")
    about = "train only this arm, or those whose names match a pattern such as 'SNLI*', and their baselines"
    options.add_repeated(parser, "--arm", f"{about}; can be repeated", metavar="NAME")
    parser.add_argument(
        "--shares",
        type=shares,
        default=(),
        metavar="S,S",
        help="train only runs with these shares of the training data, such as 0.01,1",
    )
    options.add_seeds(parser, "train only runs with these seeds, such as 1-3 or 1,2,5")
    options.add_config_arguments(parser, "study", "seeds=[1] or changes.trainer.num_epochs=1")
    options.add_flag(parser, "--dry-run", "check everything, and list the runs with their state")
    options.add_flag(parser, "--list", "list the studies in the package")


def shares(text: str) -> tuple[float, ...]:
    """Shares of data such as `0.01,1`."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = (math.nan,)
    if not all(0 < number <= 1 for number in found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a comma-separated list of numbers above 0 and up to 1")
    return found


def run_study(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.studies import packaged_studies

    if arguments.list:
        print_summaries(packaged_studies())
        return
    options.refuse_torchrun("study")
    if arguments.study is None:
        raise ElmoTasksError("no study given; give a file or a name of --list")
    import shlex  # here, because it makes every command start later

    from elmo_tasks.extras.studies.study import Selection, Study, as_options
    from elmo_tasks.extras.studies.study_runs import StudyFolder, run_study

    selection = Selection(arguments.arm, arguments.shares, arguments.seeds)
    study = Study.load(arguments.study, arguments.set, dict(arguments.ext_var), selection)
    path = Path(arguments.study_folder or Path("runs", "studies", Path(arguments.study).stem))
    folder = StudyFolder(path, study)
    if arguments.dry_run:
        _print_plan(folder)
        return
    options_given = as_options(arguments.set, dict(arguments.ext_var), arguments.include_package)
    command = shlex.join(["elmo-tasks", "study", arguments.study, "-s", str(path), *options_given])
    total = len(folder.chosen())
    if failures := run_study(folder, command=command, packages=arguments.include_package):
        lines = "".join(f"\n  {failure}" for failure in failures)
        raise ElmoTasksError(f"{len(failures)} of {total} runs failed; call again to retry them:{lines}")
    logger.info("the runs have finished; for tables and plots:")
    logger.info("  %s", shlex.join(["elmo-tasks", "report", str(path)]))


def _print_plan(folder: StudyFolder) -> None:
    rows = [
        [run.arm.name, f"{100 * run.share:g} %", str(run.seed), run.arm.config, folder.state(run_folder)]
        for run, run_folder in folder.pairs()
        if run.chosen
    ]
    print_table(folder.study.config.title, ("arm", "share", "seed", "config", "state"), rows)
    states = [folder.state(run_folder) for _, run_folder in folder.chosen()]
    to_go = len(states) - states.count("finished")
    print(f"{counted(len(states), 'run')} in {folder.path}; {to_go} to go")


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder of a study")


def run_report(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.studies.reports import write_report

    if Path(arguments.folder, SEARCH).is_file():
        raise ElmoTasksError(
            f"{arguments.folder}: holds a search; calling its `elmo-tasks tune` again prints its best trials"
        )
    print(write_report(arguments.folder))


def add_tune(parser: argparse.ArgumentParser) -> None:
    _add_file_and_folder(parser, "search", "trials", "file")
    options.add_config_arguments(parser, "search", "trials=10 or changes.trainer.num_epochs=1")
    options.add_flag(parser, "--dry-run", "check everything, and print the space")
    options.add_flag(parser, "--list", "list the searches in the package")


def run_tune(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.studies import packaged_searches

    if arguments.list:
        print_summaries(packaged_searches())
        return
    if arguments.search is None:
        raise ElmoTasksError("no search given; give a file or a name of --list")
    options.refuse_torchrun("tune")
    if importlib.util.find_spec("optuna") is None:
        raise ElmoTasksError("a search needs Optuna, which is not installed: pip install 'elmo-tasks[tune]'")
    from elmo_tasks.extras.studies.study import as_text
    from elmo_tasks.extras.studies.tuning import Search, Tuning

    search = Search.load(arguments.search, arguments.set, dict(arguments.ext_var))
    if arguments.dry_run:
        rows = [[key, as_text(each)] for key, each in search.config.space.items()]
        print_table(search.config.title, ("key", "values"), rows)
        metric = search.experiment.trainer.validation_metric
        print(f"{search.config.trials} trials of {search.config_file}, by the validation metric {metric}")
        return
    path = Path(arguments.search_folder or Path("runs", "studies", Path(arguments.search).stem))
    tuning = Tuning(path, search)
    tuning.train()
    table, training = tuning.write_best()
    print_table(table.title, table.columns, table.rows)
    print(training)
