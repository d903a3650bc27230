"""The command line: parses, calls and prints, nothing else.

Each command is a function that adds its arguments and one that runs it, side by side; the latter imports what it needs,
so that `--help` answers at once. Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from elmo_tasks import __version__
from elmo_tasks.cli_arguments import (
    add_config_arguments,
    add_run_arguments,
    add_run_path,
    integers,
    positive,
    run_overrides,
)
from elmo_tasks.console import (
    binary_output,
    is_main_process,
    print_metrics,
    print_table,
    print_training_metrics,
    set_up_logging,
)
from elmo_tasks.errors import ElmoTasksError

logger = logging.getLogger(__name__)

USER_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes; the latter two are 128 + the signal's number


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code: 0, or 2 after an error that the user can mend."""
    parsed = _parser().parse_args(arguments)
    set_up_logging(parsed.verbosity)
    try:
        parsed.run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the results has seen enough. What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except ElmoTasksError as error:
        print(f"error: {error}", file=sys.stderr)
        return USER_ERROR
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return USER_ERROR
    return 0


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", help="Jsonnet or JSON file that describes the experiment")
    parser.add_argument(
        "-s", "--run-folder", metavar="DIR", help="where the run is written (default: runs/<name of the config>)"
    )
    add_config_arguments(parser)
    parser.add_argument(
        "--seeds", type=integers, default=(), metavar="N,N", help="one run for each seed, then mean and deviation"
    )
    parser.add_argument("--self-contained", action="store_true", help="copy the biLM's files into the run's folder")
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--resume", action="store_true", help="go on where an earlier run of this folder stopped")
    earlier.add_argument("--force", action="store_true", help="remove what an earlier run left in the folder")
    parser.add_argument("--dry-run", action="store_true", help="check and print the config; read no data")


def _train(arguments: argparse.Namespace) -> None:
    if arguments.dry_run:
        _print_config(arguments)
        return
    from elmo_tasks.config import include_packages
    from elmo_tasks.experiment import train

    include_packages(arguments.include_package)
    metrics = train(
        arguments.config,
        arguments.run_folder or Path("runs") / Path(arguments.config).stem,
        overrides=arguments.set,
        variables=dict(arguments.ext_var),
        seeds=arguments.seeds,
        resume=arguments.resume,
        force=arguments.force,
        self_contained=arguments.self_contained,
    )
    if is_main_process():
        print_training_metrics(metrics)


def _print_config(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import describe, include_packages, load_config
    from elmo_tasks.experiment import ExperimentConfig

    include_packages(arguments.include_package)
    config = load_config(arguments.config, ExperimentConfig, arguments.set, dict(arguments.ext_var))
    print(describe(config), end="")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument(
        "data", metavar="DATA", help="file or hub data set with gold labels, as the run's reader takes it"
    )
    parser.add_argument("--predictions", metavar="FILE", help="write each example and its prediction, as JSON lines")
    parser.add_argument("--output", metavar="FILE", help="write the metrics, as JSON")
    parser.add_argument("--json", action="store_true", help="print the metrics as JSON instead of a table")


def _evaluate(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import include_packages
    from elmo_tasks.experiment import evaluate
    from elmo_tasks.files import write_json

    include_packages(arguments.include_package)
    metrics = evaluate(
        arguments.run_path,
        arguments.data,
        predictions=arguments.predictions,
        batch_tokens=arguments.batch_tokens,
        overrides=run_overrides(arguments),
    )
    if not is_main_process():
        return
    if arguments.output:
        write_json(arguments.output, metrics)
    if arguments.json:
        print(json.dumps(metrics, indent=2, ensure_ascii=False))
    else:
        print_metrics(metrics, title=arguments.data)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("input", metavar="INPUT", help="file to predict, compressed or not, or - for standard input")
    parser.add_argument(
        "--format",
        choices=("auto", "text", "jsonl"),
        default="auto",
        help="text: a paragraph a line; jsonl: a JSON object a line; auto: tell them by the first line (default: auto)",
    )
    parser.add_argument("--output", metavar="FILE", help="write the results here instead of to standard output")


def _predict(arguments: argparse.Namespace) -> None:
    from elmo_tasks.config import include_packages
    from elmo_tasks.experiment import load_run
    from elmo_tasks.predictors import build_predictor
    from elmo_tasks.predictors.inputs import read_inputs, source_name
    from elmo_tasks.predictors.predictor import DEFAULT_BATCH_TOKENS

    include_packages(arguments.include_package)
    run = load_run(arguments.run_path, overrides=run_overrides(arguments))
    predictor = build_predictor(
        run.model.to(run.config.trainer.accelerator().device),
        run.vocabulary,
        run.reader,
        batch_tokens=arguments.batch_tokens or DEFAULT_BATCH_TOKENS,
    )
    inputs = read_inputs(arguments.input, arguments.format)
    with binary_output(arguments.output) as stream:
        for result in predictor.predict(inputs, source=source_name(arguments.input)):
            stream.write((json.dumps(result, ensure_ascii=False) + "\n").encode())


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="Jsonnet or JSON file (not needed for --schema)")
    add_config_arguments(parser)
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of every config, for editors")


def _config(arguments: argparse.Namespace) -> None:
    if not arguments.schema:
        if arguments.config is None:
            raise ElmoTasksError("no config given; wanted a Jsonnet or JSON file, or --schema")
        _print_config(arguments)
        return
    from elmo_tasks.config import config_schema, include_packages
    from elmo_tasks.experiment import ExperimentConfig

    include_packages(arguments.include_package)
    print(json.dumps(config_schema(ExperimentConfig), indent=2, ensure_ascii=False))


def _add_embed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="UTF-8 text, compressed or not")
    parser.add_argument("--output", metavar="FILE", required=True, help="the file to write, .hdf5 or .npz")
    parser.add_argument("--bilm", metavar="DIR", help="the folder of the biLM's *options.json and *weights.hdf5")
    parser.add_argument("--options", metavar="FILE", help="in place of --bilm: the biLM's options.json")
    parser.add_argument("--weights", metavar="FILE", help="in place of --bilm: the biLM's weights, HDF5")
    parser.add_argument(
        "--layers",
        default="all",
        metavar="LAYERS",
        help="all, mix (their mean), top, or a layer's number (default: all)",
    )
    parser.add_argument(
        "--pool", choices=("none", "mean", "max"), default="none", help="one vector a sentence (default: none)"
    )
    computation = parser.add_mutually_exclusive_group()
    computation.add_argument(
        "--precision",
        choices=("float32", "bfloat16", "int8"),
        default="float32",
        help="of the products; the others are faster and less exact (default: float32)",
    )
    computation.add_argument(
        "--stateful", action="store_true", help="carry the LSTMs' state on, as bilm-tf does: far slower"
    )
    parser.add_argument(
        "--no-index",
        action="store_true",
        help="leave out sentence_to_index, for which all sentences are held in memory",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--tokenized", action="store_true", help="a sentence a line, as it is (the default)")
    form.add_argument("--raw", action="store_true", help="split lines into sentences and those into tokens")
    parser.add_argument(
        "--batch-tokens", type=positive, default=4096, metavar="N", help="most tokens in a batch (default: 4096)"
    )


def _embed(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo import BiLM
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.elmo.embed import embed_file
    from elmo_tasks.elmo.fast import FastBiLM
    from elmo_tasks.tokenization import tokenize

    def tokenize_line(line: str) -> list[list[str]]:
        return [[token.text for token in sentence] for sentence in tokenize(line)]

    files = BiLMFiles.chosen(arguments.bilm, arguments.options, arguments.weights)
    bilm: BiLM | FastBiLM
    if arguments.stateful:
        bilm = BiLM.load(files.options, files.weights, stateful=True)
    else:
        bilm = FastBiLM.load(files.options, files.weights, arguments.precision)
    count = embed_file(
        arguments.input,
        arguments.output,
        bilm,
        layers=arguments.layers,
        pool=arguments.pool,
        tokenize=tokenize_line if arguments.raw else None,
        max_tokens=arguments.batch_tokens,
        keep_sentences=not arguments.no_index,
    )
    logger.info("%s: vectors of %d sentences", arguments.output, count)


def _add_sample_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="where the files are written")
    parser.add_argument("--task", required=True, metavar="TASK", help="for which task, for example ner")
    parser.add_argument("--seed", type=int, default=13, metavar="N", help="of everything that is drawn (default: 13)")
    parser.add_argument(
        "--sentences",
        type=integers,
        default=(1000, 200, 200),
        metavar="N,N,N",
        help="sentences for training, development and test (default: 1000,200,200)",
    )


def _sample_data(arguments: argparse.Namespace) -> None:
    from elmo_tasks.sample_data import write_sample_data

    if len(arguments.sentences) != 3:
        raise ElmoTasksError(
            f"--sentences has {len(arguments.sentences)} numbers; wanted three: training, development, test"
        )
    for path in write_sample_data(arguments.folder, arguments.task, arguments.seed, arguments.sentences):
        print(path)


def _add_archive(parser: argparse.ArgumentParser) -> None:
    add_run_path(parser)
    parser.add_argument("file", metavar="FILE.tar.gz", help="the archive to write")
    parser.add_argument(
        "--without-bilm", action="store_true", help="leave the biLM out and refer to it by path and hash"
    )


def _archive(arguments: argparse.Namespace) -> None:
    from elmo_tasks.experiment import archive

    archive(arguments.run_path, arguments.file, self_contained=not arguments.without_bilm)
    print(arguments.file)


def _add_random_bilm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="where options.json and weights.hdf5 are written")
    parser.add_argument(
        "--size",
        choices=("tiny", "small", "medium", "original"),
        default="small",
        help="one of the published sizes, or a tiny one (default: small)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the weights (default: 0)")


def _random_bilm(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo import PUBLISHED_OPTIONS, TINY_OPTIONS, random_bilm

    options, weights = Path(arguments.folder) / "options.json", Path(arguments.folder) / "weights.hdf5"
    bilm = random_bilm({**PUBLISHED_OPTIONS, "tiny": TINY_OPTIONS}[arguments.size], arguments.seed)
    bilm.save(options, weights)
    logger.warning("this biLM is untrained: its weights are random, and it knows no language")
    print(options, weights, sep="\n")


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="info: list what is there; clear: remove it")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the cache to clear, or the beginning of its name")


def _cache(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo import layer_cache_folders as folders

    if arguments.action == "info":
        columns = ("name", "biLM", "precision", "stored as", "sentences", "tokens", "size", "last used")
        print_table("layers of biLMs", columns, [entry.as_row() for entry in folders.info()])
    else:
        print(f"{folders.human_size(folders.clear(arguments.name))} freed")


@dataclasses.dataclass(frozen=True)
class _Command:
    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


_COMMANDS = {
    "train": _Command(
        "train a model and evaluate it on the test set",
        "elmo-tasks train configs/ner_conll03.jsonnet -s runs/ner --set model.dropout=0.3",
        _add_train,
        _train,
    ),
    "evaluate": _Command(
        "score a trained run on data with gold labels",
        "elmo-tasks evaluate runs/ner eng.testb",
        _add_evaluate,
        _evaluate,
    ),
    "predict": _Command(
        "predict raw text or JSON lines with a trained run",
        "echo 'Alan Turing worked at Bletchley Park.' | elmo-tasks predict runs/ner -",
        _add_predict,
        _predict,
    ),
    "config": _Command(
        "check a config and print it whole, or print the configs' JSON schema",
        "elmo-tasks config configs/ner_conll03.jsonnet --set random_seed=2",
        _add_config,
        _config,
    ),
    "embed": _Command(
        "write the biLM's vectors of a text",
        "elmo-tasks embed sentences.txt --output vectors.hdf5 --bilm bilm",
        _add_embed,
        _embed,
    ),
    "sample-data": _Command(
        "make small data sets to try things out with",
        "elmo-tasks sample-data data --task ner",
        _add_sample_data,
        _sample_data,
    ),
    "archive": _Command("pack a run into one file", "elmo-tasks archive runs/ner ner.tar.gz", _add_archive, _archive),
    "cache": _Command(
        "list or remove the layers of biLMs that training keeps on disk",
        "elmo-tasks cache info",
        _add_cache,
        _cache,
    ),
    "random-bilm": _Command(
        "write an untrained biLM with random weights, to try things out with",
        "elmo-tasks random-bilm bilm --size tiny",
        _add_random_bilm,
        _random_bilm,
    ),
}


def _parser() -> argparse.ArgumentParser:
    volume = argparse.ArgumentParser(add_help=False)
    loudness = volume.add_mutually_exclusive_group()
    loudness.add_argument(
        "--verbose", dest="verbosity", action="store_const", const=logging.DEBUG, help="tell more on standard error"
    )
    loudness.add_argument(
        "--quiet", dest="verbosity", action="store_const", const=logging.WARNING, help="tell of warnings alone"
    )
    volume.set_defaults(verbosity=logging.INFO)

    parser = argparse.ArgumentParser(
        prog="elmo-tasks", description="ELMo for the six task models of Peters et al. (2018), in PyTorch 2."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"example:\n  {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[volume],
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser
