"""The command that turns AllenNLP's archives into runs."""

from __future__ import annotations

import argparse
import logging
import tarfile
from pathlib import Path

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError

logger = logging.getLogger(__name__)


def add_import_allennlp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "archive",
        metavar="ARCHIVE",
        help="AllenNLP's model.tar.gz, or the folder that it unpacks to; or a folder of archives, all of which are "
        "imported: one that cannot be is named with the reason",
    )
    parser.add_argument(
        "run_folder", metavar="RUN", help="the folder to write the run to; for a folder of archives, that of their runs"
    )
    parser.add_argument(
        "--bilm",
        metavar="DIR",
        help="the folder for the biLM of the model's ELMo, which several runs can share: if it holds the same biLM, it "
        "is used (default: RUN/bilm)",
    )
    parser.add_argument(
        "--transformer",
        metavar="DIR|hub:NAME",
        help="where the config and the tokenizer of the model's transformer are, which an archive does not have "
        "(default: the model on the hub that the archive names)",
    )
    options.add_force(parser)


def run_import_allennlp(arguments: argparse.Namespace) -> None:
    archives = _archives_in(arguments.archive)
    failed = 0
    for path in archives:
        try:
            _import(path, Path(arguments.run_folder, path.name.partition(".tar")[0]), arguments)
        except ElmoTasksError as error:
            failed += 1
            print(error)
    if failed:
        raise ElmoTasksError(f"{failed} of {len(archives)} archives cannot be imported")
    if not archives:
        _import(arguments.archive, arguments.run_folder, arguments)


def _archives_in(folder: str) -> list[Path]:
    """The archives of a folder, by their content: those in AllenNLP's own cache have no endings. None of an archive."""
    if not Path(folder).is_dir() or Path(folder, "config.json").is_file():
        return []
    return [path for path in sorted(Path(folder).iterdir()) if path.is_file() and tarfile.is_tarfile(path)]


def _import(archive: str | Path, folder: str | Path, arguments: argparse.Namespace) -> None:
    """Imports one archive, and prints what differs."""
    from elmo_tasks.migration.importing import import_allennlp

    imported = import_allennlp(
        archive,
        folder,
        bilm=arguments.bilm,
        transformer=arguments.transformer,
        force=arguments.force,
    )
    print(f"{folder}: AllenNLP's {imported.kind}")
    for note in imported.notes:
        print(f"- {note}")
    if imported.unread:
        print(f"- without a meaning here: {', '.join(imported.unread)}")
