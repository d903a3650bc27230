"""The command that turns AllenNLP's archives into runs."""

from __future__ import annotations

import argparse
import logging

from elmo_tasks.commands import options

logger = logging.getLogger(__name__)


def add_import_allennlp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", help="AllenNLP's model.tar.gz, or the folder that it unpacks to")
    parser.add_argument("run_folder", metavar="RUN", help="the folder to write the run to")
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
    from elmo_tasks.migration.importing import import_allennlp

    folder = arguments.run_folder
    imported = import_allennlp(
        arguments.archive,
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
