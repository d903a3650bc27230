"""The commands that pack runs and list installed models."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_json, print_table
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.paths import check_output

logger = logging.getLogger(__name__)


def add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="print the model card of this model (default: list all)"
    )
    options.add_flag(parser, "--json", "print JSON instead of a table or a card")


def run_models(arguments: argparse.Namespace) -> None:
    from elmo_tasks.files.installed_models import INSTALL, how_to_get, installed_models, model_named, twins

    if name := arguments.name:
        if not (model := model_named(name)):
            raise ElmoTasksError(f"{name}: expected the name of an installed model{how_to_get(Path(name))}")
        if arguments.json:
            print_json(model.to_json())
        else:
            print(model.card())
        return
    models = installed_models()
    if not models:
        logger.info("no models are installed; install some with %s", INSTALL)
    if arguments.json:
        print_json([model.to_json() for model in models])
    elif models:
        rows, with_elmo = [], twins(models)
        for model in models:
            about, bilm = model.about(), model.bilm()
            shown = f"{bilm.get('bilm', 'own')} {str(bilm.get('fingerprint'))[:12]}" if bilm else "none"
            size = f"{model.size() / 1e6:.1f}"
            task = f"{with_elmo[model.name]} without ELMo" if model.name in with_elmo else about.task
            facts = (model.name, task, ", ".join(about.data), about.score, about.licence, size, shown)
            rows.append(["" if fact is None else str(fact) for fact in facts])
        print_table("installed models", ("name", "task", "data", "score", "licence", "MB", "biLM"), rows)


def add_archive(parser: argparse.ArgumentParser) -> None:
    options.add_run_path(parser)
    parser.add_argument("file", metavar="FILE.tar.gz", help="the archive to write")
    options.add_force(parser)
    options.add_flag(
        parser,
        "--without-bilm",
        "leave the biLM and the transformer out and store their hashes; those who use the archive say where they are "
        "with --set model.embedder.elmo.bilm=DIR (not needed for the default biLM) and "
        "--set model.embedder.transformer.model=DIR",
    )


def run_archive(arguments: argparse.Namespace) -> None:
    from elmo_tasks.runs.archive import archive

    check_output(arguments.file, force=arguments.force, packed=True)
    if not arguments.file.endswith((".tar.gz", ".tgz")):
        raise ElmoTasksError(f"{arguments.file}: an archive is a .tar.gz file; expected a name with that ending")
    archive(arguments.run_path, arguments.file, self_contained=not arguments.without_bilm)
    print(arguments.file)
