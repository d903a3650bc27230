"""The command that makes small data sets for trying things out."""

from __future__ import annotations

import argparse

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError


def add_sample_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder to write the files to")
    parser.add_argument(
        "--task", default="all", metavar="TASK", help="the name of a task, for example ner, or all (default: all)"
    )
    options.add_force(parser)
    options.add_seed(parser, 13)
    parser.add_argument(
        "--sentences",
        type=options.integers,
        default=(1000, 200, 200),
        metavar="N,N,N",
        help="the number of sentences for training, development and test; tasks whose examples are paragraphs or "
        "documents get fewer examples (default: 1000,200,200)",
    )


def run_sample_data(arguments: argparse.Namespace) -> None:
    from elmo_tasks.sample_data import write_sample_data

    if len(arguments.sentences) != 3:
        raise ElmoTasksError(
            f"--sentences has {len(arguments.sentences)} number(s); expected three: training, development, test"
        )
    sizes, force = arguments.sentences, arguments.force
    for path in write_sample_data(arguments.folder, arguments.task, arguments.seed, sizes, force=force):
        print(path)
