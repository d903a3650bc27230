"""The commands that use the vectors of a biLM."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands import numbers, options
from elmo_tasks.commands.console import print_json, print_table
from elmo_tasks.commands.parts import add_inputs, add_parts, make_parts, writes_parts
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.files.overwriting import check_ending, check_output
from elmo_tasks.files.text import standard_input

if TYPE_CHECKING:
    import torch

    from elmo_tasks.elmo import BiLM
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.modules.word_vectors import WordVectorFile
    from elmo_tasks.probes.similarity import WordSimilarities
    from elmo_tasks.text.tokenizers import Tokenizer

logger = logging.getLogger(__name__)


def add_embed(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser, "a UTF-8 text file")
    parser.add_argument(
        "--output",
        metavar="FILE|DIR/",
        required=True,
        help="the .hdf5 or .npz file to write; with --per word, a .txt file (word2vec's format) or .csv; or, with a "
        "slash at the end, a folder for Parquet files",
    )
    options.add_force(parser)
    _add_bilm_and_layers(parser)
    options.add_choice(
        parser,
        "--per",
        ("sentence", "word"),
        "what has an entry: each sentence; or each word of the text, with the mean of its vectors wherever it is",
    )
    options.add_device(parser, "auto")
    options.add_flag(parser, "--no-index", "leave out sentence_to_index, which needs all sentences in memory")
    options.add_tokenizer_arguments(parser, options.BILM_TOKENIZER)
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


def _add_bilm_and_layers(parser: argparse.ArgumentParser) -> None:
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
        type=numbers.layers,
        metavar="LAYERS",
        help="all, mix (the mean of all layers), top, or the number of a layer (default: all; for a folder or words, "
        "mix)",
    )
    options.add_choice(parser, "--pool", ("none", "mean", "max"), "write one vector per sentence")
    computation = parser.add_mutually_exclusive_group()
    options.add_choice(
        computation,
        "--precision",
        ("float32", "bfloat16", "int8"),
        "of matrix products; bfloat16 and int8 are less exact but faster on processors with AVX-512 or AMX",
    )
    options.add_flag(
        computation, "--stateful", "carry the state of the LSTMs from batch to batch, as bilm-tf does; much slower"
    )


def run_embed(arguments: argparse.Namespace) -> None:
    import torch

    from elmo_tasks.elmo import BiLM
    from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
    from elmo_tasks.elmo.embed import embed_file, embed_words
    from elmo_tasks.elmo.fast import FastBiLM
    from elmo_tasks.elmo.language import language_check
    from elmo_tasks.elmo.vector_file import check_vector_file
    from elmo_tasks.text.tokenizers import WhitespaceTokenizer

    in_parts = writes_parts(arguments)
    if not in_parts:
        check_output(arguments.output, force=arguments.force)
    device = options.chosen_device(arguments)
    if arguments.per == "word":
        _check_words(arguments, in_parts=in_parts)
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
    tokenizer = _tokenizer(arguments, files.options.parent)
    bilm: BiLM | FastBiLM
    if arguments.stateful:
        bilm = BiLM.load(files.options, files.weights, stateful=True).to(device)
    else:
        bilm = FastBiLM(BiLM.load(files.options, files.weights).to(device), arguments.precision)
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
        settings |= {"pool": arguments.pool, "keep_sentences": not arguments.no_index, "check": language_check(files)}
        count = embed_file(source, arguments.output, bilm, layers=arguments.layers or "all", **settings)
    logger.info("%s: vectors of %s", arguments.output, counted(count, arguments.per))


def _check_words(arguments: argparse.Namespace, *, in_parts: bool) -> None:
    """Raises `ElmoTasksError` if other options do not fit vectors of words."""
    given = {"--pool": arguments.pool != "none", "--no-index": arguments.no_index, "a folder": in_parts}
    if found := [name for name, value in given.items() if value]:
        raise ElmoTasksError(f"--per word: expected no {found[0].removeprefix('a ')}; it writes one .txt or .csv file")
    check_ending(arguments.output, (".txt", ".vec", ".csv"))


def _embed_parts(arguments: argparse.Namespace, files: BiLMFiles, device: torch.device) -> None:
    from elmo_tasks.integrations.batches import Embed

    for name in ("stateful", "no_index"):
        if getattr(arguments, name):
            raise ElmoTasksError(f"--{name.replace('_', '-')}: only for one output file, not for a folder")
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


def add_neighbors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence")
    parser.add_argument(
        "--word", required=True, metavar="WORD", help="the token of the sentence to find neighbours for"
    )
    parser.add_argument("--pool", required=True, metavar="FILE", help="the text to search, compressed or not")
    options.add_bilm_arguments(parser)
    options.add_flag(parser, "--same-word", "search only for other occurrences of the word")
    _add_static(parser, "also show the nearest words by these word vectors, such as GloVe's")
    options.add_number(parser, "--count", 5, "the number of neighbours per layer")
    options.add_flag(parser, "--json", "print the neighbours as JSON instead of tables")


def run_neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tasks.probes.neighbors import nearest_tokens
    from elmo_tasks.progress import counted_items
    from elmo_tasks.text.prose import raw_lines
    from elmo_tasks.text.token_in_context import find_token

    bilm, tokenizer = _bilm_and_tokenizer(arguments)
    query = find_token([token.text for token in tokenizer.words(arguments.sentence)], arguments.word)
    words = _static_vectors(arguments).nearest(query.word, arguments.count) if arguments.static else []
    lines = raw_lines(arguments.pool, tokenized=arguments.tokenized)
    sentences = (sentence for _, line in lines for sentence in tokenizer.strings(line))
    with contextlib.closing(counted_items(sentences, "sentences read")) as pool:
        layers = nearest_tokens(bilm, query, pool, count=arguments.count, same_word=arguments.same_word)
    if arguments.json:
        found = [
            [{"sentence": n.token.sentence, "place": n.token.index, "similarity": n.similarity} for n in layer]
            for layer in layers
        ]
        static = [{"word": word, "similarity": similarity} for word, similarity in words]
        print_json({"static": static, "layers": found} if arguments.static else found)
        return
    if arguments.static:
        rows = [[word, f"{similarity:.3f}"] for word, similarity in words]
        print_table(f"{Path(arguments.static).name} (the same in every sentence)", ("word", "cosine"), rows)
    for number, layer in enumerate(layers):
        rows = [[neighbor.token.marked(), f"{neighbor.similarity:.3f}"] for neighbor in layer]
        print_table(f"layer {number}" + (" (tokens without context)" if number == 0 else ""), ("token", "cosine"), rows)


def add_similarity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word", metavar="WORD", help="a token of each sentence; case does not matter")
    parser.add_argument(
        "sentences",
        metavar="SENTENCE",
        nargs="+",
        help="sentences with the word, or - to read them from standard input, one per line",
    )
    options.add_bilm_arguments(parser)
    _add_static(parser, "also compare these word vectors, such as GloVe's, which are the same in every sentence")
    options.add_flag(parser, "--json", "print the similarities as JSON instead of tables")


def run_similarity(arguments: argparse.Namespace) -> None:
    from elmo_tasks.probes.similarity import word_similarities
    from elmo_tasks.text.prose import raw_lines

    bilm, tokenizer = _bilm_and_tokenizer(arguments)
    sentences = arguments.sentences
    if sentences == ["-"]:
        sentences = [line for _, line in raw_lines(standard_input(), tokenized=arguments.tokenized) if line.strip()]
    split = [[token.text for token in tokenizer.words(sentence)] for sentence in sentences]
    static = _static_vectors(arguments) if arguments.static else None
    found = word_similarities(bilm, arguments.word, split, static)
    if static and found.static is None:
        logger.warning("%s: has no vector for %r", static.path, arguments.word)
    if arguments.json:
        occurrences = [{"sentence": each.sentence, "place": each.index} for each in found.occurrences]
        print_json({"occurrences": occurrences, "pairs": _pairs(found)})
        return
    rows = [[f"{number}  {each.marked()}"] for number, each in enumerate(found.occurrences, start=1)]
    print_table("occurrences", ("token",), rows)
    columns = [*(f"layer {number}" for number in range(len(found.layers))), *([static.path.name] if static else [])]
    rows = []
    for each in _pairs(found):
        cosines = [*each["layers"], each["static"]][: len(columns)]
        shown = ("" if cosine is None else f"{cosine:.3f}" for cosine in cosines)
        rows.append([" and ".join(str(index + 1) for index in each["pair"]), *shown])
    print_table("cosine similarity", ("pair", *columns), rows)


def _pairs(found: WordSimilarities) -> list[dict[str, Any]]:
    """The similarities of each two occurrences, whose indices count from 0."""
    return [
        {
            "pair": [one, other],
            "layers": found.layers[:, one, other].tolist(),
            "static": None if found.static is None else found.static[one, other].item(),
        }
        for one, other in itertools.combinations(range(len(found.occurrences)), 2)
    ]


def _add_static(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--static", metavar="FILE", help=help)


def _static_vectors(arguments: argparse.Namespace) -> WordVectorFile:
    from elmo_tasks.modules.word_vectors import WordVectorFile

    return WordVectorFile(arguments.static)


def _bilm_and_tokenizer(arguments: argparse.Namespace) -> tuple[BiLM, Tokenizer]:
    from elmo_tasks.elmo import BiLM
    from elmo_tasks.elmo.bilm_files import BiLMFiles

    files = BiLMFiles.in_folder(arguments.bilm)
    tokenizer = _tokenizer(arguments, files.options.parent)
    return BiLM.load(files.options, files.weights).to(options.chosen_device(arguments)), tokenizer


def _tokenizer(arguments: argparse.Namespace, folder: Path) -> Tokenizer:
    """The tokenizer that the options name, or that of the biLM in the folder."""
    from elmo_tasks.text.tokenizer_config import parse_tokenizer, tokenizer_of_bilm

    name = options.chosen_tokenizer(arguments)
    return parse_tokenizer(name) if name else tokenizer_of_bilm(folder)
