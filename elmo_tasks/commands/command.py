"""All commands. A command's module is imported when the command is called, so that `--help` answers at once."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import NamedTuple


class Command(NamedTuple):
    """A command of the command line.

    Arguments:
        summary: what it does, shown in the list of commands.
        example: a command line that calls it, shown in its help.
        add_arguments: adds its arguments to a parser.
        run: runs it with the parsed arguments.
    """

    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


def _command(path: str, summary: str, example: str) -> Command:
    """The command whose module, in this package, has `add_NAME` and `run_NAME`; `path` is MODULE.NAME."""
    module, name = path.split(".")

    def call(prefix: str, argument: object) -> None:
        getattr(importlib.import_module(f"{__package__}.{module}"), f"{prefix}_{name}")(argument)

    return Command(summary, example, lambda parser: call("add", parser), lambda arguments: call("run", arguments))


GROUPS: dict[str, dict[str, Command]] = {
    "train and evaluate": {
        "train": _command(
            "experiments.train",
            "train a model and evaluate it on the test set",
            "elmo-tasks train ner_conll03 -s runs/ner --set model.dropout=0.3",
        ),
        "evaluate": _command(
            "experiments.evaluate",
            "score a trained run on data with gold labels",
            "elmo-tasks evaluate runs/ner eng.testb",
        ),
    },
    "use a run": {
        "predict": _command(
            "experiments.predict",
            "apply a trained run to raw text or JSON lines",
            "echo 'Alan Turing worked at Bletchley Park.' | elmo-tasks predict runs/ner -",
        ),
        "calibrate": _command(
            "analysis.calibrate",
            "find the temperature with which the probabilities of a run are right",
            "elmo-tasks calibrate runs/ner eng.testa --test eng.testb",
        ),
        "serve": _command(
            "serving.serve",
            "serve runs to browsers and programs",
            "elmo-tasks serve runs/ner runs/sst5 --port 8000",
        ),
        "models": _command(
            "named_models.models",
            "list the installed trained models, or print the model card of one",
            "elmo-tasks models ner",
        ),
        "archive": _command(
            "experiments.archive",
            "pack a run into a single file",
            "elmo-tasks archive runs/ner ner.tar.gz",
        ),
        "import-allennlp": _command(
            "migration.import_allennlp",
            "turn an AllenNLP archive into a run",
            "elmo-tasks import-allennlp model.tar.gz runs/imported",
        ),
    },
    "look at results": {
        "plot": _command(
            "analysis.plot",
            "draw the curves of runs and the weights of their layers",
            "elmo-tasks plot runs/ner --output ner.svg",
        ),
        "compare": _command(
            "analysis.compare",
            "compare systems on the same data, with intervals and tests of significance",
            "elmo-tasks compare runs/baseline runs/ner eng.testb",
        ),
        "errors": _command(
            "analysis.errors",
            "show what a system gets wrong: kinds of errors, confused labels, the worst examples",
            "elmo-tasks errors runs/ner eng.testb",
        ),
    },
    "many runs": {
        "study": _command(
            "studies.study",
            "train every run of a table or figure: configs, changes, seeds and shares of the training data",
            "elmo-tasks study benchmarks --jobs 2",
        ),
        "report": _command(
            "studies.report",
            "write the tables and plots of a study, as Markdown and as a page for a browser",
            "elmo-tasks report runs/studies/benchmarks",
        ),
        "tune": _command(
            "studies.tune",
            "search for the best values of a config's keys, on the validation data",
            "elmo-tasks tune tune_quick",
        ),
    },
    "language models": {
        "pretrain": _command(
            "pretraining.pretrain",
            "train a biLM on text, or fine-tune one",
            "elmo-tasks pretrain bilm/small -s runs/bilm",
        ),
        "perplexity": _command(
            "pretraining.perplexity",
            "measure the perplexity of a biLM, with the full softmax",
            "elmo-tasks perplexity text.txt --bilm runs/bilm",
        ),
        "score": _command(
            "scores.score",
            "show how surprising a biLM finds each word of a text, and which words it expects instead",
            "echo 'The keys to the cabinet is here.' | elmo-tasks score - --substitutes 5",
        ),
        "similarity": _command(
            "vectors.similarity",
            "compare the vectors of a word in several sentences, layer by layer",
            'elmo-tasks similarity bank "He sat on the bank of the river." "The bank closed."',
        ),
        "neighbors": _command(
            "vectors.neighbors",
            "find the tokens with the most similar vectors, layer by layer",
            'elmo-tasks neighbors "The dog let out a sharp bark ." --word bark --pool sentences.txt',
        ),
        "embed": _command(
            "vectors.embed",
            "write the biLM vectors of a text",
            "elmo-tasks embed sentences.txt --output vectors.hdf5 --bilm bilm",
        ),
        "probe": _command(
            "probes.probe",
            "measure what each layer of a biLM knows: word senses, parts of speech, or labels of your own",
            "elmo-tasks probe train.conllu --test test.conllu",
        ),
        "fetch": _command(
            "named_models.fetch",
            "download a published biLM, and print where it is",
            "elmo-tasks fetch original",
        ),
    },
    "configs and data": {
        "config": _command(
            "experiments.config",
            "check a config and print all of its values; list, copy or describe configs",
            "elmo-tasks config ner_conll03 --set random_seed=2",
        ),
        "data": _command(
            "data.data",
            "describe the data of a config, and warn about likely problems",
            "elmo-tasks data ner_conll03",
        ),
        "sample-data": _command(
            "data.sample_data",
            "write small real data sets for trying things out",
            "elmo-tasks sample-data data --task ner",
        ),
    },
}
"""All commands in groups, in the order of `--help`."""

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
