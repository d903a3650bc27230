"""The command that looks at data sets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_table

_MOST_LABELS = 30  # in the table


def add_data(parser: argparse.ArgumentParser) -> None:
    options.add_config_path(parser, "the Jsonnet or JSON file of an experiment, or the name of a config in the package")
    options.add_config_arguments(parser)
    options.add_result(parser, "write everything", "everything as JSON instead of tables")


def run_data(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import load_config
    from elmo_tasks.extras.advice.data_analysis import analyse
    from elmo_tasks.runs.experiment_config import ExperimentConfig
    from elmo_tasks.runs.experiment_data import wants_folds, with_validation

    options.check_result(arguments)
    config = load_config(arguments.config, ExperimentConfig, arguments.set, dict(arguments.ext_var))
    if wants_folds(config, arguments.set, {}):  # which learn from all of the data, and are scored on all of it
        config = config.model_copy(update={"validation_data_path": None})
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
    for text in dict.fromkeys(text for part in parts for text in part["left_out"]):
        print(text)
    for warning in report["warnings"]:
        print(f"warning: {warning['text']}")
    if not report["warnings"]:
        print("Nothing was found that will hurt.")


def _share(label: str, counts: Mapping[str, int]) -> str:
    number = counts.get(label, 0)
    return f"{number:,} ({100 * number / max(1, sum(counts.values())):.1f} %)"


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
