"""The command that writes small data sets for trying things out."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from elmo_tasks.commands import options
from elmo_tasks.config.data_folder import (
    DATA_VARIABLE,
    DEFAULT_DATA_FOLDER,
    MAKE_SAMPLE_DATA,
    data_folder,
    set_data_folder,
)

logger = logging.getLogger(__name__)

# Sample data that files in the package name without the variable, and the options that make it.
SAMPLE_FOLDERS = {"runs/quickstart-data": "--task ner", "runs/quick-data": "--sentences 300,60,60"}


def add_sample_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder to write the files to")
    parser.add_argument(
        "--task", default="all", metavar="TASK", help="the name of a task, for example ner, or all (default: all)"
    )
    options.add_force(parser)
    parser.add_argument(
        "--sentences",
        type=three_sizes,
        metavar="N,N,N",
        help="at most this many sentences, pairs or questions for training, development and test: the first ones, in "
        "whole passages and documents (default: all)",
    )


def three_sizes(text: str) -> tuple[int, ...]:
    """Three numbers such as `1000,200,200`."""
    sizes = tuple(map(options.whole_number, text.split(",")))
    if len(sizes) != 3 or not all(number is not None and 1 <= number <= options.MOST for number in sizes):
        expected = "three whole numbers of at least 1 with commas: training, development, test, such as 1000,200,200"
        raise argparse.ArgumentTypeError(f"{text!r}; expected {expected}")
    return tuple(number for number in sizes if number is not None)


def run_sample_data(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.samples import write_sample_data

    for path in write_sample_data(arguments.folder, arguments.task, arguments.sentences, force=arguments.force):
        print(path)
    if Path(arguments.folder) not in {data_folder(), *map(Path, SAMPLE_FOLDERS)}:
        hint = "the configs read %s; to train on these files instead: %s=%s elmo-tasks train NAME"
        logger.warning(hint, data_folder(), DATA_VARIABLE, arguments.folder)


def missing_data(path: Path) -> str:
    """How sample data is made where a file is missing; empty if it is neither below a folder of samples nor of data."""
    for sample_folder, options_of_command in SAMPLE_FOLDERS.items():
        if path.is_relative_to(sample_folder):
            return f"{MAKE_SAMPLE_DATA}: elmo-tasks sample-data {sample_folder} {options_of_command}"
    folder = data_folder()
    if not path.is_relative_to(folder):
        return ""
    sample = f"elmo-tasks sample-data {DEFAULT_DATA_FOLDER}"
    if folder != Path(DEFAULT_DATA_FOLDER):  # sample data do not belong among other data
        sample += f", and set it to {DEFAULT_DATA_FOLDER!r}"
    return f"{set_data_folder()}, or make sample data: {sample}"
