"""The command that turns AllenNLP's archives into runs."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from elmo_tasks.commands import options

logger = logging.getLogger(__name__)


def add_import_allennlp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "archive",
        metavar="ARCHIVE",
        help="AllenNLP's model.tar.gz, or the folder that it unpacks to; without RUN also a folder of archives",
    )
    parser.add_argument(
        "run_folder",
        metavar="RUN",
        nargs="?",
        help="the folder to write the run to; without it, the command only says of each archive whether it can be "
        "imported",
    )
    parser.add_argument(
        "--transformer",
        metavar="DIR|hub:NAME",
        help="where the config and the tokenizer of the model's transformer are, which an archive does not have "
        "(default: the model on the hub that the archive names)",
    )
    options.add_force(parser)


def run_import_allennlp(arguments: argparse.Namespace) -> None:
    from elmo_tasks.migration.importing import import_allennlp

    if arguments.run_folder is None:
        _check_archives(arguments)
        return
    places = arguments.archive, arguments.run_folder
    imported = import_allennlp(*places, transformer=arguments.transformer, force=arguments.force)
    print(f"{arguments.run_folder}: AllenNLP's {imported.kind}")
    for note in imported.notes:
        print(f"- {note}")
    if imported.unread:
        print(f"- without a meaning here: {', '.join(imported.unread)}")


def _check_archives(arguments: argparse.Namespace) -> None:
    """Imports each archive into a temporary folder, and prints what came of it."""
    from elmo_tasks.errors import MigrationError
    from elmo_tasks.migration.importing import archives_in, import_allennlp

    possible = 0
    paths = archives_in(arguments.archive)
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            try:
                imported = import_allennlp(path, Path(folder, "run"), transformer=arguments.transformer)
            except MigrationError as error:
                print(f"no   {error}", flush=True)
                continue
        possible += 1
        print(f"yes  {path}: AllenNLP's {imported.kind}", flush=True)
    print(f"{possible} of {len(paths)} archives can be imported", file=sys.stderr)
