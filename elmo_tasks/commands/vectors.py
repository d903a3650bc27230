"""The commands that use the vectors of a biLM, and the command that makes an untrained biLM."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.commands.arguments import add_flag, positive
from elmo_tasks.commands.command import Command
from elmo_tasks.console import print_table

logger = logging.getLogger(__name__)


def _add_embed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="a UTF-8 text file, compressed or not")
    parser.add_argument("--output", metavar="FILE", required=True, help="the .hdf5 or .npz file to write")
    parser.add_argument(
        "--bilm",
        metavar="DIR",
        help="the folder with the biLM's *options.json and *weights.hdf5 (default: the biLM in the package)",
    )
    parser.add_argument("--options", metavar="FILE", help="the biLM's options.json, instead of --bilm")
    parser.add_argument("--weights", metavar="FILE", help="the biLM's weights as HDF5, instead of --bilm")
    parser.add_argument(
        "--layers",
        default="all",
        metavar="LAYERS",
        help="all, mix (the mean of all layers), top, or the number of a layer (default: all)",
    )
    parser.add_argument(
        "--pool", choices=("none", "mean", "max"), default="none", help="write one vector per sentence (default: none)"
    )
    computation = parser.add_mutually_exclusive_group()
    computation.add_argument(
        "--precision",
        choices=("float32", "bfloat16", "int8"),
        default="float32",
        help="the precision of matrix products; bfloat16 and int8 are faster and less exact (default: float32)",
    )
    add_flag(
        computation, "--stateful", "carry the state of the LSTMs from batch to batch, as bilm-tf does; much slower"
    )
    add_flag(parser, "--no-index", "leave out sentence_to_index, which needs all sentences in memory")
    form = parser.add_mutually_exclusive_group()
    add_flag(form, "--tokenized", "the text has one tokenized sentence per line (default)")
    add_flag(form, "--raw", "split each line into sentences and tokens first")
    parser.add_argument(
        "--batch-tokens",
        type=positive,
        default=4096,
        metavar="N",
        help="the maximum number of tokens in a batch (default: 4096)",
    )


def _embed(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo import BiLM
    from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
    from elmo_tasks.elmo.embed import embed_file
    from elmo_tasks.elmo.fast import FastBiLM
    from elmo_tasks.text.tokenization import tokenize_to_strings

    named = arguments.bilm or arguments.options or arguments.weights
    folder = arguments.bilm if named else DEFAULT_BILM
    files = BiLMFiles.chosen(folder, arguments.options, arguments.weights)
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
        tokenize=(lambda line: list(tokenize_to_strings(line))) if arguments.raw else None,
        max_tokens=arguments.batch_tokens,
        keep_sentences=not arguments.no_index,
    )
    logger.info("%s: vectors of %d sentences", arguments.output, count)


def _add_neighbors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentence", metavar="SENTENCE", help="a tokenized sentence, with spaces between tokens")
    parser.add_argument(
        "--word", required=True, metavar="WORD", help="the token of the sentence to find neighbours for"
    )
    parser.add_argument(
        "--pool", required=True, metavar="FILE", help="the sentences to search, one tokenized sentence per line"
    )
    add_flag(parser, "--raw", "split the sentence and the pool into sentences and tokens first")
    parser.add_argument(
        "--bilm", default="default", metavar="DIR", help="the folder of the biLM (default: the biLM in the package)"
    )
    add_flag(parser, "--same-word", "search only for other occurrences of the word")
    parser.add_argument(
        "--count", type=positive, default=5, metavar="N", help="the number of neighbours per layer (default: 5)"
    )
    add_flag(parser, "--json", "print the neighbours as JSON instead of tables")


def _neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tasks.analysis.neighbors import find_token, nearest_tokens
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.elmo.fast import FastBiLM
    from elmo_tasks.files import read_lines
    from elmo_tasks.text.tokenization import tokenize_to_strings

    def sentences(line: str) -> Iterable[list[str]]:
        return tokenize_to_strings(line) if arguments.raw else [line.split()]

    files = BiLMFiles.in_folder(arguments.bilm)
    bilm = FastBiLM.load(files.options, files.weights)
    query = find_token([token for sentence in sentences(arguments.sentence) for token in sentence], arguments.word)
    pool = (sentence for _, line in read_lines(arguments.pool) for sentence in sentences(line))
    layers = nearest_tokens(bilm, query, pool, count=arguments.count, same_word=arguments.same_word)
    if arguments.json:
        found = [
            [{"sentence": n.token.sentence, "place": n.token.place, "similarity": n.similarity} for n in layer]
            for layer in layers
        ]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for number, layer in enumerate(layers):
        rows = [[neighbor.token.marked(), f"{neighbor.similarity:.3f}"] for neighbor in layer]
        print_table(f"layer {number}" + (" (tokens without context)" if number == 0 else ""), ("token", "cosine"), rows)


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), help="info: list the caches; clear: remove them")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="the cache to clear: its name or how it begins (default: all)"
    )


def _cache(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo import layer_store

    if arguments.action == "info":
        columns = ("name", "biLM", "precision", "stored as", "sentences", "tokens", "size", "last used")
        print_table("layers of biLMs", columns, [entry.as_row() for entry in layer_store.info()])
    else:
        print(f"{layer_store.human_size(layer_store.clear(arguments.name))} freed")


def _add_random_bilm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder to write options.json and weights.hdf5 to")
    parser.add_argument(
        "--size",
        choices=("tiny", "small", "medium", "original"),
        default="small",
        help="a published size, or tiny (default: small)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the random seed (default: 0)")


def _random_bilm(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo import PUBLISHED_OPTIONS, TINY_OPTIONS, random_bilm

    options, weights = Path(arguments.folder) / "options.json", Path(arguments.folder) / "weights.hdf5"
    bilm = random_bilm({**PUBLISHED_OPTIONS, "tiny": TINY_OPTIONS}[arguments.size], arguments.seed)
    bilm.save(options, weights)
    logger.warning("this biLM is untrained: its weights are random")
    print(options, weights, sep="\n")


COMMANDS = {
    "embed": Command(
        "write the biLM vectors of a text",
        "elmo-tasks embed sentences.txt --output vectors.hdf5 --bilm bilm",
        _add_embed,
        _embed,
    ),
    "neighbors": Command(
        "find the tokens with the most similar vectors, layer by layer",
        'elmo-tasks neighbors "The dog let out a sharp bark ." --word bark --pool sentences.txt',
        _add_neighbors,
        _neighbors,
    ),
    "cache": Command(
        "list or remove the cached biLM layers that training keeps on disk",
        "elmo-tasks cache info",
        _add_cache,
        _cache,
    ),
    "random-bilm": Command(
        "write an untrained biLM with random weights, for trying things out",
        "elmo-tasks random-bilm bilm --size tiny",
        _add_random_bilm,
        _random_bilm,
    ),
}
