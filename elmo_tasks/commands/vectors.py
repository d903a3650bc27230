"""The commands that work with vectors of a biLM, and the one that makes an untrained biLM."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path

from elmo_tasks.commands.arguments import positive
from elmo_tasks.commands.command import Command
from elmo_tasks.console import print_table

logger = logging.getLogger(__name__)


def _add_embed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="UTF-8 text, compressed or not")
    parser.add_argument("--output", metavar="FILE", required=True, help="the file to write, .hdf5 or .npz")
    parser.add_argument(
        "--bilm",
        metavar="DIR",
        help="the folder of the biLM's *options.json and *weights.hdf5 (default: the biLM that comes with the package)",
    )
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
    from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
    from elmo_tasks.elmo.embed import embed_file
    from elmo_tasks.elmo.fast import FastBiLM
    from elmo_tasks.text.tokenization import tokenize

    def tokenize_line(line: str) -> list[list[str]]:
        return [[token.text for token in sentence] for sentence in tokenize(line)]

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
        tokenize=tokenize_line if arguments.raw else None,
        max_tokens=arguments.batch_tokens,
        keep_sentences=not arguments.no_index,
    )
    logger.info("%s: vectors of %d sentences", arguments.output, count)


def _add_neighbors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence, tokens between white space")
    parser.add_argument("--word", required=True, metavar="WORD", help="the token whose neighbours are wanted")
    parser.add_argument("--pool", required=True, metavar="FILE", help="sentences to look in, one a line, tokenized")
    parser.add_argument("--raw", action="store_true", help="split sentence and pool into sentences and tokens first")
    parser.add_argument(
        "--bilm", default="default", metavar="DIR", help="the biLM's folder (default: the one that comes along)"
    )
    parser.add_argument("--same-word", action="store_true", help="look at other occurrences of the word alone")
    parser.add_argument("--count", type=positive, default=5, metavar="N", help="neighbours a layer (default: 5)")
    parser.add_argument("--json", action="store_true", help="print them as JSON instead of tables")


def _neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tasks.analysis.neighbors import find_token, nearest_tokens
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.elmo.fast import FastBiLM
    from elmo_tasks.files import read_lines
    from elmo_tasks.text.tokenization import tokenize

    def sentences(line: str) -> list[list[str]]:
        if arguments.raw:
            return [[token.text for token in sentence] for sentence in tokenize(line)]
        return [line.split()]

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
    parser.add_argument("action", choices=("info", "clear"), help="info: list what is there; clear: remove it")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the cache to clear, or the beginning of its name")


def _cache(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo import layer_store

    if arguments.action == "info":
        columns = ("name", "biLM", "precision", "stored as", "sentences", "tokens", "size", "last used")
        print_table("layers of biLMs", columns, [entry.as_row() for entry in layer_store.info()])
    else:
        print(f"{layer_store.human_size(layer_store.clear(arguments.name))} freed")


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


COMMANDS = {
    "embed": Command(
        "write the biLM's vectors of a text",
        "elmo-tasks embed sentences.txt --output vectors.hdf5 --bilm bilm",
        _add_embed,
        _embed,
    ),
    "neighbors": Command(
        "find the tokens whose vectors in context are nearest to a token's, layer by layer",
        'elmo-tasks neighbors "The dog let out a sharp bark ." --word bark --pool sentences.txt',
        _add_neighbors,
        _neighbors,
    ),
    "cache": Command(
        "list or remove the layers of biLMs that training keeps on disk",
        "elmo-tasks cache info",
        _add_cache,
        _cache,
    ),
    "random-bilm": Command(
        "write an untrained biLM with random weights, to try things out with",
        "elmo-tasks random-bilm bilm --size tiny",
        _add_random_bilm,
        _random_bilm,
    ),
}
