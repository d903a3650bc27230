"""The commands that look at data sets, and write small ones for trying things out."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.commands import numbers, options
from elmo_tasks.commands.console import print_table
from elmo_tasks.config.data_folder import DATA_VARIABLE, SAMPLE_FOLDERS, data_folder

logger = logging.getLogger(__name__)

_MOST_LABELS = 30  # in the table


def add_data(parser: argparse.ArgumentParser) -> None:
    options.add_config_path(parser, "the Jsonnet or JSON file of an experiment, or the name of a config in the package")
    options.add_config_arguments(parser)
    options.add_result(parser, "write everything", "everything as JSON instead of tables")


def run_data(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import load_config
    from elmo_tasks.runs.data_analysis import analyse
    from elmo_tasks.runs.experiment_config import ExperimentConfig
    from elmo_tasks.runs.experiment_data import with_validation

    options.check_result(arguments)
    config = load_config(arguments.config, ExperimentConfig, arguments.set, dict(arguments.ext_var))
    report = analyse(with_validation(config, arguments.set))
    options.show_result(arguments, report, lambda: _print_report(arguments.config, report))


def _print_report(title: str, report: Mapping[str, Any]) -> None:
    names, parts = list(report["parts"]), list(report["parts"].values())
    counts = [key for key, value in parts[0].items() if isinstance(value, (int, float))]
    rows = [[key.replace("_", " "), *(_shown(part[key]) for part in parts)] for key in counts]
    rows.append(["skipped, not in the format", *(_shown(len(part["skipped"])) for part in parts)])
    print_table(title, ("", *names), rows)
    labels = list(dict.fromkeys(label for part in parts for label in part["labels"]))
    shown = [[label, *(_share(label, part["labels"]) for part in parts)] for label in labels[:_MOST_LABELS]]
    if len(labels) > _MOST_LABELS:
        shown.append([f"… and {len(labels) - _MOST_LABELS} more"])
    if labels:
        print_table("labels", ("", *names), shown)
    longest = [[location, _shown(length)] for part in parts for location, length in part["longest"].items()]
    print_table("longest inputs", ("", "tokens"), longest)
    for warning in report["warnings"]:
        print(f"warning: {warning['text']}")
    if not report["warnings"]:
        print("Nothing was found that will hurt.")


def _share(label: str, counts: Mapping[str, int]) -> str:
    number = counts.get(label, 0)
    return f"{number:,} ({100 * number / max(1, sum(counts.values())):.1f} %)"


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def add_sample_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder to write the files to")
    parser.add_argument(
        "--task", default="all", metavar="TASK", help="the name of a task, for example ner, or all (default: all)"
    )
    options.add_force(parser)
    parser.add_argument(
        "--sentences",
        type=numbers.three_sizes,
        metavar="N,N,N",
        help="at most this many sentences, pairs or questions for training, development and test: the first ones, in "
        "whole passages and documents (default: all)",
    )


def run_sample_data(arguments: argparse.Namespace) -> None:
    from elmo_tasks.sample_data import write_sample_data

    for path in write_sample_data(arguments.folder, arguments.task, arguments.sentences, force=arguments.force):
        print(path)
    if Path(arguments.folder) not in {data_folder(), *map(Path, SAMPLE_FOLDERS)}:
        hint = "the configs read %s; to train on these files instead: %s=%s elmo-tasks train NAME"
        logger.warning(hint, data_folder(), DATA_VARIABLE, arguments.folder)
