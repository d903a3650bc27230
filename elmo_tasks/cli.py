"""The command line: parses the arguments and runs a command of `elmo_tasks.commands`.

Results go to standard output, everything else goes to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from elmo_tasks import __version__
from elmo_tasks.commands.command import COMMANDS, GROUPS
from elmo_tasks.errors import DISK_FULL_ERRORS, ElmoTasksError, counted, did_you_mean
from elmo_tasks.files.paths import ends_in_slash
from elmo_tasks.files.signals import BROKEN_PIPE, INTERRUPTED, Stopped, ended_cleanly, is_signal

_TEXTS = {"note", "sentence", "sentences", "word"}  # arguments that are not paths
_OUTPUTS = ("output", "html", "predictions", "file", "copy")  # arguments that name files to write
_QUICK = ("dry_run", "list")  # options with which there is nothing to go on with
USER_ERROR = 2  # an exit code


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code.

    It is 0 on success, 2 after an error that the user can fix, and 1 if output files then have a part of the results.
    """
    # oneDNN keeps the code of fewer shapes, so that the memory of a server does not grow; see `elmo.fast.products`.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")
    _open_standard_streams()
    with ended_cleanly():
        try:
            return _run(arguments)
        except BrokenPipeError:  # the reader of the output has closed it, as `head` does
            return BROKEN_PIPE
        except KeyboardInterrupt:
            return INTERRUPTED
        except ElmoTasksError as error:
            return _failed(str(error), error.exit_code)
        except OSError as error:
            if error.filename is None and error.errno not in DISK_FULL_ERRORS and not _is_broken(sys.stdout):
                raise
            return _failed(f"{error.filename or 'standard output'}: {error.strerror}")
        finally:
            for stream in (sys.stdout, sys.stderr):
                if _is_broken(stream):  # flushing the rest at exit must not fail again
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    try:
        parsed = _parse(sys.argv[1:] if arguments is None else arguments)
    except SystemExit:  # after --help or wrong arguments
        sys.stdout.flush()
        raise
    from elmo_tasks.progress import at_work, set_up_logging  # with rich, which is not needed for --help

    set_up_logging(parsed.verbosity)
    try:
        if "include_package" in parsed and not getattr(parsed, "list", False):
            from elmo_tasks.config import include_packages

            include_packages(parsed.include_package)
        with at_work(parsed.words[0]) if _speaks() else contextlib.nullcontext():
            parsed.run(parsed)
    except Stopped as stopped:
        _say_stopped(str(stopped))
        raise stopped.ending from None
    except (KeyboardInterrupt, SystemExit) as error:
        if is_signal(error):
            _say_stopped(_what_is_left(parsed))
        raise
    sys.stdout.flush()
    return 0


def _what_is_left(arguments: argparse.Namespace) -> str:
    """What a stopped command has written, and how to go on; empty if there is nothing to say."""
    command = COMMANDS[arguments.words[0]].row
    if command.goes_on:
        return "" if any(getattr(arguments, name, False) for name in _QUICK) else command.goes_on
    files = [path for name in _OUTPUTS if isinstance(path := getattr(arguments, name, None), str)]
    if not files:
        return ""
    if ends_in_slash(files[0]) or Path(files[0]).is_dir():
        number = counted(len([*Path(files[0]).glob("*.parquet")]), "complete part")
        return f"{files[0]}: has {number}; the same command makes the others"
    return f"{', '.join(files)}: not written; results are only written whole"


def _speaks() -> bool:
    """Whether this process is the first of those that torchrun has started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def _say_stopped(message: str) -> None:
    with contextlib.suppress(OSError):  # a terminal that was closed
        if _speaks():
            print(f"interrupted; {message}" if message else "interrupted", file=sys.stderr, flush=True)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    completing = "_ARGCOMPLETE" in os.environ  # the shell asks how to complete a command line
    parser = make_parser(COMMANDS if completing else arguments[:1])
    if completing:
        import argcomplete

        argcomplete.autocomplete(parser)
    if not arguments:
        parser.print_help()
        parser.exit()
    command = arguments[0]
    if not command.startswith("-") and command not in COMMANDS:
        known = list(COMMANDS)
        parser.error(f"{command!r} is not a command.{did_you_mean(command, known)} Commands: {', '.join(known)}")
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        settings = "; settings of a config are changed by --set KEY=VALUE" if hasattr(parsed, "set") else ""
        parsed.parser.error(f"unrecognized arguments: {' '.join(unknown)}{settings}")
    # `~/` at the beginning of an argument is the home folder, as in --output=~/x, which shells leave as it is.
    for name, value in vars(parsed).items():
        if name not in _TEXTS and isinstance(value, (str, list)):
            given = value if isinstance(value, list) else [value]
            paths = [os.path.expanduser(x) if isinstance(x, str) and x.startswith("~/") else x for x in given]
            setattr(parsed, name, paths if isinstance(value, list) else paths[0])
    parsed.words = list(arguments)
    return parsed


def _failed(message: str, exit_code: int = USER_ERROR) -> int:
    with contextlib.suppress(OSError):  # standard error may be closed, too
        print(f"error: {message}", file=sys.stderr, flush=True)
    return exit_code


def _is_broken(stream: IO[str]) -> bool:
    """Whether a stream still has something that cannot be written."""
    try:
        stream.flush()
    except OSError:
        return True
    return False


def _open_standard_streams() -> None:
    """Opens the standard streams that the caller has closed, so that no other file gets their numbers.

    Writing to standard output is then an error. What goes to standard error is lost.
    """
    for number, wrong_way in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, wrong_way)  # gets the smallest number that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    # A character that the encoding of a terminal lacks is written as an escape: it does not end the command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with arguments in one line, and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(USER_ERROR, f"error: {message}\nFor help: {self.prog} --help\n")


class _CommandParser(_Parser):
    """The parser of a command, which also takes positional arguments after options: `evaluate A --device cpu FILE`."""

    _is_called = False

    def parse_known_args(  # type: ignore[override]  # its types are overloaded
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._is_called:  # by the function below, which parses twice
            return super().parse_known_args(args, namespace)
        self._is_called = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_called = False


def make_parser(complete: Collection[str]) -> argparse.ArgumentParser:
    """The parser of the command line. Only the commands in `complete` get their arguments, because all take a while."""
    volume = _Parser(add_help=False)
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

    width = shutil.get_terminal_size().columns - 2
    lines = []  # the commands with what they do, in groups
    for title, names in GROUPS.items():
        lines.append(f"{title}:")
        for name in names:
            text = f"  {name:<16}{COMMANDS[name].row.summary}" if name in COMMANDS else ""
            lines.append(textwrap.fill(text, max(width, 40), subsequent_indent=" " * 18, break_on_hyphens=False))
        lines.append("")
    parser = _Parser(
        prog="elmo-tasks",
        description="ELMo for the six task models of Peters et al. (2018), in PyTorch 2.",
        epilog="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    about = "one of those below; `elmo-tasks COMMAND --help` shows its arguments and an example"
    kind = _Parser if "_ARGCOMPLETE" in os.environ else _CommandParser  # the package that completes parses by itself
    commands = parser.add_subparsers(metavar="COMMAND", required=True, help=about, parser_class=kind)
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(
            name,
            description=f"{command.row.summary[0].upper()}{command.row.summary[1:]}.",
            epilog=f"example:\n  {command.row.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[volume],
        )
        if name in complete:
            command.add_arguments(subparser)
        subparser.set_defaults(run=command.run, parser=subparser)
    return parser
