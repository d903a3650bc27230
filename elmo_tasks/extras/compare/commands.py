"""The commands that look at results: what systems get right and wrong, how sure they are, and pictures of runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_confusion, print_json, print_metrics, print_table
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.paths import check_output

if TYPE_CHECKING:
    from elmo_tasks.extras.compare.comparison import Comparison
    from elmo_tasks.extras.compare.error_report import ErrorReport
    from elmo_tasks.extras.compare.significance import Interval


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="SYSTEM",
        nargs="+",
        help="runs, as folders, archives or installed models; folders that `train --seeds` made; folders of runs that "
        "have predictions and no model; or files that `evaluate --predictions` wrote. The others are compared with "
        "the first. The last one can be the data to evaluate runs on (default: the test data of each run's config)",
    )
    parser.add_argument("--metric", metavar="NAME", help="the score to compare (default: the main one of the task)")
    options.add_number(parser, "--resamples", 10_000, "the number of resamples for the tests and intervals")
    options.add_number(parser, "--seed", 13370, "the random seed of the resamples", options.random_seed)
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    options.add_device(parser)
    options.add_unknown_labels(parser)
    options.add_flag(parser, "--json", "print JSON instead of tables")
    options.add_include_package(parser)


def run_compare(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.compare.comparison import compare, split_paths

    options.refuse_torchrun("compare")
    systems, data = split_paths(arguments.paths)
    comparison = compare(
        systems,
        data,
        metric=arguments.metric,
        resamples=arguments.resamples,
        seed=arguments.seed,
        unknown_labels=arguments.unknown_labels,
        overrides=options.device_overrides(arguments),
    )
    print_json(comparison.to_json()) if arguments.json else _print_comparison(comparison)


def _print_comparison(comparison: Comparison) -> None:
    size = f"{comparison.num_examples} examples"
    if comparison.num_units != comparison.num_examples:
        size += f", drawn as {comparison.num_units} units"
    rows = [
        [
            system.name,
            f"{system.score:.2f}",
            _interval(system.interval),
            " ".join(f"{each:.2f}" for each in system.scores),
        ]
        for system in comparison.systems
    ]
    several = any(system.seeds for system in comparison.systems)
    columns = ("system", comparison.metric, "95 % interval", "of each seed")
    print_table(f"{comparison.metric}, {size}", columns[: 3 + several], [row[: 3 + several] for row in rows])
    if not (differences := comparison.differences):
        return
    corrected = ", corrected by Holm" if differences[0].corrected else ""
    tests = list(dict.fromkeys(test for each in differences for test in each.p_values))
    titles = {"randomization": "p (randomization)", "seeds": "p (seeds)"}
    rows = []
    for each in differences:
        p_values = each.corrected or each.p_values
        shown = [f"{p_values[test]:.4f}" if test in p_values else "" for test in tests]
        counts = map(str, (each.better, each.worse, each.equal))
        rows.append([each.name, f"{each.difference:+.2f}", _interval(each.interval), *shown, *counts])
    print_table(
        f"difference to {comparison.systems[0].name}; two-sided p-values{corrected}, {comparison.resamples} resamples",
        ("system", "difference", "95 % interval", *(titles[test] for test in tests), "better", "worse", "equal"),
        rows,
    )


def _interval(interval: Interval) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}"


def add_errors(parser: argparse.ArgumentParser) -> None:
    about = "a run, as a folder, an archive or an installed model, or a file that `evaluate --predictions` wrote"
    parser.add_argument("path", metavar="SYSTEM", help=about)
    parser.add_argument(
        "data", metavar="DATA", nargs="?", help="the data to evaluate a run on (default: the test data of its config)"
    )
    options.add_number(parser, "--examples", 20, "show the N worst examples")
    _add_common(parser)


def run_errors(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.compare.error_report import errors
    from elmo_tasks.extras.compare.systems import stored_predictions

    options.refuse_torchrun("errors")
    if arguments.data is not None and stored_predictions(arguments.path):
        raise ElmoTasksError(f"{arguments.path}: predictions include their data; expected no {arguments.data}")
    report = errors(
        arguments.path,
        arguments.data,
        num_examples=arguments.examples,
        unknown_labels=arguments.unknown_labels,
        overrides=options.device_overrides(arguments),
    )
    print_json(report.to_json()) if arguments.json else _print_errors(report)


def _print_errors(report: ErrorReport) -> None:
    from elmo_tasks.extras.compare.error_report import side_by_side
    from elmo_tasks.rendering.terminal import Terminal

    print_metrics(report.scores, title=f"{report.num_examples} examples")
    if report.kinds:
        print_table(report.counted, ("", "number"), [[name, str(count)] for name, count in report.kinds.items()])
    if report.confusion:
        print_confusion(report.confusion, title="labels")
    terminal = Terminal()
    for worst in report.worst:
        print(f"-{worst.loss:.4f} {report.metric}, {worst.place}")
        terminal.show(side_by_side(report.task, worst))


def add_plot(parser: argparse.ArgumentParser) -> None:
    about = "the folders or archives of runs, or installed models"
    parser.add_argument("run_paths", metavar="RUN", nargs="+", help=about)
    parser.add_argument("--output", metavar="FILE", required=True, help="the .svg, .png or .pdf file to write")
    options.add_force(parser)


def run_plot(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.compare.plots import RunCurves, check_format, plot_runs

    check_output(arguments.output, force=arguments.force)
    check_format(arguments.output)
    plot_runs(arguments.output, [RunCurves.read(path) for path in arguments.run_paths])
    print(arguments.output)
