"""All commands. A command's module is imported when the command is called, so that `--help` answers at once."""

from __future__ import annotations

import argparse
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from elmo_tasks import hooks
from elmo_tasks.hooks import RESUMED, CommandRow


class Command(NamedTuple):
    """A command of the command line.

    Arguments:
        row: what is known of it without importing it.
        add_arguments: adds its arguments to a parser.
        run: runs it with the parsed arguments.
    """

    row: CommandRow
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


_TITLES = (
    "train and evaluate",
    "use a run",
    "look at results",
    "many runs",
    "language models",
    "configs and data",
)

_CORE = {
    "train": CommandRow(
        "train and evaluate",
        "train a model and evaluate it on the test set",
        "elmo-tasks train ner_conll03 -s runs/ner --set model.dropout=0.3",
        "train",
        goes_on=RESUMED,
    ),
    "evaluate": CommandRow(
        "train and evaluate",
        "score a trained run on data with gold labels",
        "elmo-tasks evaluate runs/ner eng.testb",
        "train",
    ),
    "predict": CommandRow(
        "use a run",
        "apply a trained run to raw text or JSON lines",
        "echo 'Alan Turing worked at Bletchley Park.' | elmo-tasks predict runs/ner -",
        "predict",
    ),
    "models": CommandRow(
        "use a run",
        "list the installed trained models, or print the model card of one",
        "elmo-tasks models ner",
        "archives",
    ),
    "archive": CommandRow(
        "use a run",
        "pack a run into a single file",
        "elmo-tasks archive runs/ner ner.tar.gz",
        "archives",
    ),
    "config": CommandRow(
        "configs and data",
        "check a config and print all of its values; list, copy or describe configs",
        "elmo-tasks config ner_conll03 --set random_seed=2",
        "configs",
    ),
}


def _command(name: str, row: CommandRow, package: str) -> Command:
    """The command of a row, whose module is in this package."""

    def call(prefix: str, argument: object) -> None:
        module = importlib.import_module(f"{package}.{row.module}")
        getattr(module, f"{prefix}_{name.replace('-', '_')}")(argument)

    return Command(row, functools.partial(call, "add"), functools.partial(call, "run"))


def _all_commands() -> dict[str, dict[str, Command]]:
    tables: dict[str, Mapping[str, CommandRow]] = {__package__: _CORE}
    for extra, about in hooks.extras().items():
        tables[f"elmo_tasks.extras.{extra}"] = about.commands
    groups: dict[str, dict[str, Command]] = {title: {} for title in _TITLES}
    for package, rows in tables.items():
        for name, row in rows.items():
            groups.setdefault(row.group, {})[name] = _command(name, row, package)
    return {title: commands for title, commands in groups.items() if commands}


GROUPS = _all_commands()
"""All commands in groups, in the order of `--help`."""

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
