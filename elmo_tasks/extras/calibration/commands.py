"""The command that calibrates a run."""

from __future__ import annotations

import argparse

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_metrics


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    options.add_run_path(parser)
    about = "data with gold labels that the run was not trained on (default: its validation data)"
    parser.add_argument("data", metavar="DATA", nargs="?", help=about)
    about = "also measure the error on this data (default, without DATA: the run's test data)"
    parser.add_argument("--test", metavar="DATA", help=about)
    options.add_device(parser)
    options.add_set(parser, "run's config")
    options.add_include_package(parser)


def run_calibrate(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.calibration.calibration import calibrate

    options.refuse_torchrun("calibrate")
    settings = options.run_overrides(arguments)
    result = calibrate(arguments.run_path, arguments.data, arguments.test, overrides=settings)
    print_metrics(result, title=arguments.run_path)
