"""The parts of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple


class Command(NamedTuple):
    """A command of the command line.

    Arguments:
        summary: what it does, shown in the list of commands.
        example: a command line that calls it, shown in its help.
        add_arguments: adds its arguments to a parser.
        run: runs it with the parsed arguments.
    """

    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]
