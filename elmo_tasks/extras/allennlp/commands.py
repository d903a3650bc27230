"""The command that turns AllenNLP's archives into runs, and its configs into ours."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from elmo_tasks.commands import options
from elmo_tasks.commands.predict import InputFormat

if TYPE_CHECKING:
    from elmo_tasks.predictors import Predictor


def add_import_allennlp(parser: argparse.ArgumentParser) -> None:
    about = "AllenNLP's model.tar.gz, its address, or the folder that it unpacks to; or a config, CONFIG.jsonnet"
    parser.add_argument("archive", metavar="ARCHIVE", help=about)
    parser.add_argument("run_folder", metavar="RUN", help="the folder to write the run to; of a config, the new config")
    parser.add_argument(
        "--transformer",
        metavar="DIR|hub:NAME",
        help="where the config and the tokenizer of the model's transformer are, which an archive does not have "
        "(default: the model on the hub that the archive names)",
    )
    options.add_force(parser)


def run_import_allennlp(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.allennlp.importing import import_allennlp, import_config

    places = arguments.archive, arguments.run_folder
    if arguments.archive.endswith((".jsonnet", ".json")):
        lines = import_config(*places, force=arguments.force)
        print(f"{arguments.run_folder}: a config for `elmo-tasks train`", *lines, sep="\n- ")
        return
    imported = import_allennlp(*places, transformer=arguments.transformer, force=arguments.force)
    print(f"{arguments.run_folder}: AllenNLP's {imported.kind}")
    for line in imported.lines():
        print(f"- {line}")


def _in_their_keys(predictor: Predictor) -> Predictor:
    from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor

    return AllenNlpPredictor(predictor)


FORMAT = InputFormat("as auto, with the keys of AllenNLP's predictors", "auto", _in_their_keys, "AllenNLP's")
