"""The command that draws pictures of runs."""

from __future__ import annotations

import argparse
from typing import Any

from elmo_tasks.commands.arguments import (
    add_device,
    add_force,
    add_include_package,
    add_unknown_labels,
    device_overrides,
)
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.overwriting import check_output


def add_plot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_paths", metavar="RUN", nargs="+", help="the folders or archives of runs")
    parser.add_argument("--output", metavar="FILE", required=True, help="the .svg, .png or .pdf file to write")
    add_force(parser)
    confusion = "also evaluate the run on this data, and draw which label is taken for which"
    parser.add_argument("--confusion", metavar="DATA", help=confusion)
    add_device(parser)
    add_unknown_labels(parser)
    add_include_package(parser)


def run_plot(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import include_packages
    from elmo_tasks.evaluation.plots import RunCurves, check_format, plot_runs

    check_output(arguments.output, force=arguments.force)
    check_format(arguments.output)
    include_packages(arguments.include_package)
    confusion: Any = None
    if arguments.confusion:
        if len(arguments.run_paths) > 1:
            raise ElmoTasksError(f"--confusion with {len(arguments.run_paths)} runs; wanted a single one")
        from elmo_tasks.runs.load import evaluate

        metrics = evaluate(
            arguments.run_paths[0],
            arguments.confusion,
            confusion=True,
            unknown_labels=arguments.unknown_labels,
            overrides=device_overrides(arguments),
        )
        confusion = metrics["confusion"]
    plot_runs(arguments.output, [RunCurves.read(path) for path in arguments.run_paths], confusion)
    print(arguments.output)
