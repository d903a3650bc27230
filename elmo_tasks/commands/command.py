"""What a command of the command line is made of."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Command:
    """A command.

    Arguments:
        summary: what it does, as the list of commands tells it.
        example: how it may be called.
        add_arguments: adds its arguments to a parser.
        run: runs it with the arguments parsed.
    """

    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]
