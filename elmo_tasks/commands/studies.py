"""The commands that run studies and write their reports."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_tasks.commands.arguments import add_config_arguments, add_flag, positive, seeds, shares
from elmo_tasks.commands.console import print_table
from elmo_tasks.errors import ElmoTasksError, counted

if TYPE_CHECKING:
    from elmo_tasks.studies.study_runs import StudyFolder

logger = logging.getLogger(__name__)


def add_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "study", metavar="FILE", nargs="?", help="the Jsonnet or JSON file, or the name of a study in the package"
    )
    parser.add_argument(
        "-s", "--study-folder", metavar="DIR", help="the folder of its runs (default: runs/studies/<name of the study>)"
    )
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="how many runs train at a time (default: 1)"
    )
    parser.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="NAME",
        help="train only this arm, or those whose names match a pattern such as 'SNLI*', and their baselines; can be "
        "repeated",
    )
    parser.add_argument(
        "--shares",
        type=shares,
        default=(),
        metavar="S,S",
        help="train only runs with these shares of the training data, such as 0.01,1",
    )
    parser.add_argument(
        "--seeds",
        type=seeds,
        default=(),
        metavar="SEEDS",
        help="train only runs with these seeds, such as 1-3 or 1,2,5",
    )
    add_config_arguments(parser, "study", "seeds=[1] or changes.trainer.num_epochs=1")
    add_flag(parser, "--dry-run", "check everything, and list the runs with their state and estimated time")
    add_flag(parser, "--list", "list the studies in the package")


def run_study(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config.packaged import packaged_studies

    if arguments.list:
        print_summaries(packaged_studies())
        return
    if arguments.study is None:
        raise ElmoTasksError("no study given; give a file or a name of --list")
    import shlex  # here, because it makes every command start later

    from elmo_tasks.config import include_packages
    from elmo_tasks.studies.study import Part, Study
    from elmo_tasks.studies.study_runs import StudyFolder, run_study

    include_packages(arguments.include_package)
    part = Part(arguments.arm, arguments.shares, arguments.seeds)
    study = Study.load(arguments.study, arguments.set, dict(arguments.ext_var), part)
    path = Path(arguments.study_folder or Path("runs", "studies", Path(arguments.study).stem))
    folder = StudyFolder(path, study)
    if arguments.dry_run:
        _print_plan(folder, arguments.jobs)
        return
    command = command_line("study", arguments.study, path, arguments)
    failures = run_study(folder, command=command, num_jobs=arguments.jobs, packages=arguments.include_package)
    if failures:
        lines = "".join(f"\n  {failure}" for failure in failures)
        total = len(folder.chosen())
        raise ElmoTasksError(f"{len(failures)} of {total} runs failed; call again to try them again:{lines}")
    logger.info("the runs have finished; for tables and plots:")
    logger.info("  %s", shlex.join(["elmo-tasks", "report", str(path)]))


def print_summaries(files: Mapping[str, Path]) -> None:
    """Prints the names of files of the package, each with its summary."""
    from elmo_tasks.config.packaged import summary

    width = max(map(len, files))
    for name, path in files.items():
        print(f"{name:<{width}}  {summary(path)}")


def command_line(name: str, source: str, folder: Path, arguments: argparse.Namespace) -> str:
    """A command with `add_config_arguments`, as a shell takes it, to be repeated."""
    import shlex

    from elmo_tasks.studies.study import as_options

    options = as_options(arguments.set, dict(arguments.ext_var), arguments.include_package)
    return shlex.join(["elmo-tasks", name, source, "-s", str(folder), *options])


def _print_plan(folder: StudyFolder, num_jobs: int) -> None:
    rows, seconds, unknown, seen = [], 0.0, 0, set()
    for run, place, estimate in zip(folder.study.runs, folder.places, folder.estimates(), strict=True):
        if not run.chosen:
            continue
        state = folder.state(place)
        if state != "finished" and place.path not in seen:
            seconds, unknown = seconds + (estimate or 0.0), unknown + (estimate is None)
        seen.add(place.path)
        time = "unknown" if estimate is None else _duration(estimate)
        rows.append([run.arm.name, f"{100 * run.share:g} %", str(run.seed), run.arm.config, state, time])
    print_table(folder.study.config.title, ("arm", "share", "seed", "config", "state", "time"), rows)
    rest = f", and {counted(unknown, 'run')} of unknown time" if unknown else ""
    time = f"{_duration(seconds / num_jobs)} with {counted(num_jobs, 'job')}"
    print(f"{counted(len(seen), 'run')} in {folder.path}; to go: {time}{rest}")
    if folder.others:
        print(folder.describe_others())


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 100 else f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder of a study or a search")


def run_report(arguments: argparse.Namespace) -> None:
    from elmo_tasks.studies.reports import write_report
    from elmo_tasks.studies.search_results import SEARCH, write_search_report

    is_search = Path(arguments.folder, SEARCH).is_file()
    for path in (write_search_report if is_search else write_report)(arguments.folder):
        print(path)
