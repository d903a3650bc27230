"""The command that checks, prints, lists and copies configs."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from elmo_tasks import hooks
from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_json, print_summaries
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.paths import check_ending, check_output

if TYPE_CHECKING:
    from elmo_tasks.config import Config


def print_config(arguments: argparse.Namespace, kind: type[Config]) -> None:
    """Prints the values of a config of some kind; errors: see `load_config`."""
    from elmo_tasks.config import describe, load_config

    print(describe(load_config(arguments.config, kind, arguments.set, dict(arguments.ext_var))), end="")


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
        from elmo_tasks.config.packaged import portable_text
        from elmo_tasks.files.atomic import atomic_write

        content = portable_text(arguments.config).encode()
        check_ending(arguments.copy, (".jsonnet",))
        check_output(arguments.copy, force=arguments.force, stream=True)
        with atomic_write(arguments.copy) as stream:
            stream.write(content)
        print(arguments.copy)
        return
    from elmo_tasks.config import config_schema
    from elmo_tasks.config.jsonnet import evaluate
    from elmo_tasks.runs.experiment_config import ExperimentConfig

    if arguments.schema:
        print_json(config_schema(ExperimentConfig, *hooks.everything("config_kind")))
        return
    values = evaluate(arguments.config, dict(arguments.ext_var), undefined={})
    key = next((key for key in hooks.names("config_kind") if key in values), None)
    print_config(arguments, hooks.find("config_kind", key) if key else ExperimentConfig)
