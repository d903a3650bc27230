"""Arguments that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_include_package(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--include-package", action="append", default=[], metavar="NAME", help="import a package with parts of your own"
    )


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", help="change a key of the config; may be repeated"
    )
    parser.add_argument(
        "--ext-var",
        type=_pair,
        action="append",
        default=[],
        metavar="N=V",
        help="an external variable of the Jsonnet file",
    )
    add_include_package(parser)


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--resume", action="store_true", help="go on where an earlier run of this folder stopped")
    earlier.add_argument("--force", action="store_true", help="remove what an earlier run left in the folder")


def add_run_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_path", metavar="RUN", help="a run's folder or its archive")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_path(parser)
    parser.add_argument(
        "--batch-tokens",
        type=positive,
        metavar="N",
        help="most tokens in a batch: its examples times the longest one's length, as the run's task counts it; of a "
        "pair, both texts (default: as the run or command has it)",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu"),
        help="auto takes a GPU where there is one (default: as in the run's config)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", help="change a key of the run's config; may be repeated"
    )
    add_include_package(parser)


def device_overrides(arguments: argparse.Namespace) -> list[str]:
    return [f"trainer.device={arguments.device}"] if arguments.device else []


def run_overrides(arguments: argparse.Namespace) -> list[str]:
    return [*device_overrides(arguments), *arguments.set]


def default_run_folder(config: str) -> Path:
    """`runs/` and the config's path below a folder `configs`, or its name alone, without the ending."""
    path = Path(config).with_suffix("")
    folders = path.parts[:-1]
    below = folders[::-1].index("configs") if "configs" in folders else 0
    return Path("runs", *folders[len(folders) - below :], path.name)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def integers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers separated by commas")
    return tuple(int(part) for part in parts)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
