"""The commands that use the vectors of a biLM."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.extras.engines.commands import add_parts, make_parts, writes_parts
from elmo_tasks.extras.raw_text import BILM_TOKENIZER, bilm_tokenizer
from elmo_tasks.files.paths import check_ending, check_output
from elmo_tasks.files.text import standard_input

if TYPE_CHECKING:
    import torch

    from elmo_tasks.elmo.bilm_files import BiLMFiles

logger = logging.getLogger(__name__)


def add_embed(parser: argparse.ArgumentParser) -> None:
    options.add_inputs(parser, "a UTF-8 text file")
    parser.add_argument(
        "--output",
        metavar="FILE|DIR/",
        required=True,
        help="the .hdf5 or .npz file to write; with --per word, a .txt file (word2vec's format) or .csv; or, with a "
        "slash at the end, a folder for Parquet files",
    )
    options.add_force(parser)
    parser.add_argument(
        "--bilm",
        metavar="DIR",
        help="the folder with the biLM's *options.json and *weights.hdf5, its zip archive, hub:ORG/NAME, or an address "
        "with #sha256=... (default: the biLM in the package)",
    )
    parser.add_argument("--options", metavar="FILE", help="the biLM's options.json or its address, instead of --bilm")
    parser.add_argument(
        "--weights", metavar="FILE", help="the biLM's weights as HDF5 or their address, instead of --bilm"
    )
    parser.add_argument(
        "--layers",
        type=layers,
        metavar="LAYERS",
        help="all, mix (the mean of all layers), top, or the number of a layer (default: all; for a folder or words, "
        "mix)",
    )
    options.add_choice(parser, "--pool", ("none", "mean", "max"), "write one vector per sentence")
    options.add_choice(
        parser,
        "--precision",
        ("float32", "bfloat16", "int8"),
        "of matrix products; bfloat16 and int8 are less exact but faster on processors with AVX-512 or AMX",
    )
    options.add_choice(
        parser,
        "--per",
        ("sentence", "word"),
        "what has an entry: each sentence; or each word of the text, with the mean of its vectors wherever it is",
    )
    options.add_device(parser, "auto")
    options.add_flag(parser, "--no-index", "leave out sentence_to_index, which needs all sentences in memory")
    options.add_tokenizer_arguments(parser, BILM_TOKENIZER)
    options.add_include_package(parser)
    options.add_number(parser, "--batch-tokens", 4096, "the maximum number of tokens in a batch")
    add_parts(parser)
    options.add_choice(
        parser,
        "--on-error",
        ("fail", "record"),
        "what to do with an unusable line, if the output is a folder: fail stops; record writes the error to its "
        "column",
    )
    parser.add_argument(
        "--number-type",
        choices=("float16", "float32"),
        help="of the vectors, if the output is a folder (default: float16); in a file they are always float32",
    )


def layers(text: str) -> str:
    """The layers of a biLM: all, their mix, the top one, or the number of one, which the biLM bounds."""
    number = options.whole_number(text)
    if text not in ("all", "mix", "top") and (number is None or number < 0):
        raise argparse.ArgumentTypeError(f"{text!r}; expected all, mix, top, or the number of a layer, from 0")
    return text


def run_embed(arguments: argparse.Namespace) -> None:
    import torch

    from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
    from elmo_tasks.elmo.embedder import text_checks
    from elmo_tasks.elmo.fast import load_frozen
    from elmo_tasks.extras.vectors.embed import check_vector_file, embed_file, embed_words
    from elmo_tasks.text.tokenizers import WhitespaceTokenizer

    in_parts = writes_parts(arguments)
    if not in_parts:
        check_output(arguments.output, force=arguments.force)
    device = options.chosen_device(arguments)
    if arguments.per == "word":
        given = {"--pool": arguments.pool != "none", "--no-index": arguments.no_index, "folder": in_parts}
        if found := [name for name, value in given.items() if value]:
            raise ElmoTasksError(f"--per word: expected no {found[0]}; it writes one .txt or .csv file")
        check_ending(arguments.output, (".txt", ".vec", ".csv"))
    elif not in_parts:
        check_vector_file(arguments.output)
    if arguments.precision == "int8" and device.type != "cpu":
        if arguments.device == "cuda":
            raise ElmoTasksError("--precision int8 is only for the CPU; use --device cpu, or another precision")
        device = torch.device("cpu")
    named = arguments.bilm or arguments.options or arguments.weights
    folder = arguments.bilm if named else DEFAULT_BILM
    files = BiLMFiles.chosen(folder, arguments.options, arguments.weights)
    if in_parts:
        _embed_parts(arguments, files, device)
        return
    tokenizer = bilm_tokenizer(arguments, files.options.parent)
    bilm = load_frozen(files, arguments.precision, device)
    source = standard_input() if arguments.input == ["-"] else arguments.input[0]
    # An empty line of tokenized text is a sentence too, so that sentences have the numbers of lines.
    is_tokenized = isinstance(tokenizer, WhitespaceTokenizer)
    settings: dict[str, Any] = {
        "tokenize": None if is_tokenized else lambda line: list(tokenizer.strings(line)),
        "max_tokens": arguments.batch_tokens,
    }
    if arguments.per == "word":
        count = embed_words(source, arguments.output, bilm, layers=arguments.layers or "mix", **settings)
    else:
        settings |= {"pool": arguments.pool, "keep_sentences": not arguments.no_index, "checks": text_checks(files)}
        count = embed_file(source, arguments.output, bilm, layers=arguments.layers or "all", **settings)
    logger.info("%s: vectors of %s", arguments.output, counted(count, arguments.per))


def _embed_parts(arguments: argparse.Namespace, files: BiLMFiles, device: torch.device) -> None:
    from elmo_tasks.extras.engines.table_functions import Embed

    if arguments.no_index:
        raise ElmoTasksError("--no-index: only for one output file, not for a folder")
    tokenizer = options.chosen_tokenizer(arguments)
    embed = Embed(
        bilm=files,
        layers=arguments.layers or "mix",
        pool=arguments.pool,
        number_type=arguments.number_type or "float16",
        precision=arguments.precision,
        tokenizer=tokenizer,
        batch_tokens=arguments.batch_tokens,
        device=str(device),
        on_error=arguments.on_error,
    )
    make_parts(arguments, embed, tokenized=tokenizer == "whitespace")
