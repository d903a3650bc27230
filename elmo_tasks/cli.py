"""The command line: parses the arguments and runs a command of `elmo_tasks.commands`.

Results go to standard output, everything else goes to standard error.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Sequence

from elmo_tasks import __version__
from elmo_tasks.commands import data, experiments, pretraining, vectors
from elmo_tasks.console import set_up_logging
from elmo_tasks.errors import ElmoTasksError

_COMMANDS = {**experiments.COMMANDS, **pretraining.COMMANDS, **vectors.COMMANDS, **data.COMMANDS}
USER_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes; the last two are 128 + the number of the signal


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code: 0 on success, 2 after an error that the user can fix."""
    parsed = _parser().parse_args(arguments)
    set_up_logging(parsed.verbosity)
    try:
        parsed.run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does. Flushing the rest at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except ElmoTasksError as error:
        print(f"error: {error}", file=sys.stderr)
        return USER_ERROR
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror}", file=sys.stderr)
        return USER_ERROR
    return 0


def _parser() -> argparse.ArgumentParser:
    volume = argparse.ArgumentParser(add_help=False)
    loudness = volume.add_mutually_exclusive_group()
    loudness.add_argument(
        "--verbose",
        dest="verbosity",
        action="store_const",
        const=logging.DEBUG,
        help="print more messages on standard error",
    )
    loudness.add_argument(
        "--quiet", dest="verbosity", action="store_const", const=logging.WARNING, help="print only warnings and errors"
    )
    volume.set_defaults(verbosity=logging.INFO)

    parser = argparse.ArgumentParser(
        prog="elmo-tasks", description="ELMo for the six task models of Peters et al. (2018), in PyTorch 2."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"example:\n  {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[volume],
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser
