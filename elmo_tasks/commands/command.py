"""All commands. A command's module is imported when the command is called, so that `--help` answers at once."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import NamedTuple

from elmo_tasks import hooks
from elmo_tasks.hooks import NO_RESULT_YET, RESUMED, UNWRITTEN


class Command(NamedTuple):
    """A command of the command line.

    Arguments:
        summary: what it does, shown in the list of commands.
        example: a command line that calls it, shown in its help.
        add_arguments: adds its arguments to a parser.
        run: runs it with the parsed arguments.
        goes_on: after a signal has ended it, what goes on with what it has written; empty if nothing does.
        unwritten: then why the file that it writes is not there, if nothing goes on.
    """

    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]
    goes_on: str = ""
    unwritten: str = UNWRITTEN


def _command(
    module: str, name: str, summary: str, example: str, goes_on: str = "", unwritten: str = UNWRITTEN
) -> Command:
    """The command whose module has `add_NAME` and `run_NAME`."""

    def call(prefix: str, argument: object) -> None:
        getattr(importlib.import_module(module), f"{prefix}_{name.replace('-', '_')}")(argument)

    functions = (lambda parser: call("add", parser)), (lambda arguments: call("run", arguments))
    return Command(summary, example, *functions, goes_on, unwritten)


_CORE: dict[str, dict[str, tuple[str, ...]]] = {
    "train and evaluate": {
        "train": (
            "train a model and evaluate it on the test set",
            "elmo-tasks train ner_conll03 -s runs/ner --set model.dropout=0.3",
            RESUMED,
        ),
        "evaluate": ("score a trained run on data with gold labels", "elmo-tasks evaluate runs/ner eng.testb"),
    },
    "use a run": {
        "predict": (
            "apply a trained run to raw text or JSON lines",
            "echo 'Alan Turing worked at Bletchley Park.' | elmo-tasks predict runs/ner -",
            "",
            NO_RESULT_YET,
        ),
        "models": ("list the installed trained models, or print the model card of one", "elmo-tasks models ner"),
        "archive": (
            "pack a run into a single file",
            "elmo-tasks archive runs/ner ner.tar.gz",
            "",
            "an archive is only written whole",
        ),
    },
    "look at results": {},
    "many runs": {},
    "language models": {},
    "configs and data": {
        "config": (
            "check a config and print all of its values; list, copy or describe configs",
            "elmo-tasks config ner_conll03 --set random_seed=2",
        ),
    },
}
_MODULES = {"evaluate": "train", "models": "archives", "archive": "archives", "config": "configs"}


def _all_commands() -> dict[str, dict[str, Command]]:
    groups = {
        title: {
            name: _command(f"{__package__}.{_MODULES.get(name, name)}", name, *about)
            for name, about in commands.items()
        }
        for title, commands in _CORE.items()
    }
    for extra, row in hooks.extras().items():
        for name, (group, summary, example, module, goes_on, unwritten) in row.commands.items():
            path = f"elmo_tasks.extras.{extra}.{module}"
            groups.setdefault(group, {})[name] = _command(path, name, summary, example, goes_on, unwritten)
    return {title: commands for title, commands in groups.items() if commands}


GROUPS = _all_commands()
"""All commands in groups, in the order of `--help`."""

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
