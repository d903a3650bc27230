"""The arguments that several commands share, and the functions that parse their values."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_flag(parser: argparse._ActionsContainer, name: str, help: str) -> None:
    parser.add_argument(name, action="store_true", help=help)


def add_include_package(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--include-package",
        action="append",
        default=[],
        metavar="NAME",
        help="import a package that defines your own parts",
    )


def add_config_and_folder(parser: argparse.ArgumentParser, described: str, written: str) -> None:
    parser.add_argument("config", metavar="CONFIG", help=f"the Jsonnet or JSON file that describes {described}")
    parser.add_argument(
        "-s",
        "--run-folder",
        metavar="DIR",
        help=f"the folder to write {written} to (default: runs/<path of the config below configs, or its name>)",
    )


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", help="change a key of the config; can be repeated"
    )
    parser.add_argument(
        "--ext-var",
        type=_pair,
        action="append",
        default=[],
        metavar="N=V",
        help="set an external variable of the Jsonnet file; can be repeated",
    )
    add_include_package(parser)


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    earlier = parser.add_mutually_exclusive_group()
    add_flag(earlier, "--resume", "continue the run in this folder where it stopped")
    add_flag(earlier, "--force", "replace the earlier run in this folder")


def add_run_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_path", metavar="RUN", help="the folder or the archive of a run")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_path(parser)
    parser.add_argument(
        "--batch-tokens",
        type=positive,
        metavar="N",
        help="the maximum number of tokens in a batch: the number of examples times the length of the longest one; "
        "for a pair of sentences, both count (default: set by the run or the command)",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu"),
        help="auto uses a GPU if there is one (default: the setting in the run's config)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", help="change a key of the run's config; can be repeated"
    )
    add_include_package(parser)


def device_overrides(arguments: argparse.Namespace) -> list[str]:
    return [f"trainer.device={arguments.device}"] if arguments.device else []


def run_overrides(arguments: argparse.Namespace) -> list[str]:
    return [*device_overrides(arguments), *arguments.set]


def default_run_folder(config: str) -> Path:
    """The default folder of a config's run: `runs/` and the path of the config below `configs`, without its suffix.

    If the config is not below a folder `configs`, only its name is used.
    """
    path = Path(config).with_suffix("")
    folders = path.parts[:-1]
    below = folders[::-1].index("configs") if "configs" in folders else 0
    return Path("runs", *folders[len(folders) - below :], path.name)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number greater than 0")
    return int(text)


def integers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a comma-separated list of whole numbers")
    return tuple(int(part) for part in parts)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} does not have the form NAME=VALUE")
    return name, value
