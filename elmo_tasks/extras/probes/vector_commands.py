"""The commands that compare the vectors of words in context."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands import options
from elmo_tasks.commands.console import print_json, print_table
from elmo_tasks.extras.raw_text import add_bilm_arguments, bilm_tokenizer
from elmo_tasks.files.text import standard_input

if TYPE_CHECKING:
    from elmo_tasks.elmo import FastBiLM
    from elmo_tasks.extras.probes.similarity import WordSimilarities
    from elmo_tasks.modules.word_vectors import WordVectorFile
    from elmo_tasks.text.tokenizers import Tokenizer

logger = logging.getLogger(__name__)


def add_neighbors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence")
    parser.add_argument(
        "--word", required=True, metavar="WORD", help="the token of the sentence to find neighbours for"
    )
    parser.add_argument("--pool", required=True, metavar="FILE", help="the text to search, compressed or not")
    add_bilm_arguments(parser)
    options.add_flag(parser, "--same-word", "search only for other occurrences of the word")
    _add_static(parser, "also show the nearest words by these word vectors, such as GloVe's")
    options.add_number(parser, "--count", 5, "the number of neighbours per layer")
    options.add_flag(parser, "--json", "print the neighbours as JSON instead of tables")


def run_neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.probes.neighbors import nearest_tokens, nearest_words
    from elmo_tasks.extras.raw_text import find_token, raw_lines
    from elmo_tasks.progress import counted_items

    bilm, tokenizer = _bilm_and_tokenizer(arguments)
    query = find_token([token.text for token in tokenizer.words(arguments.sentence)], arguments.word)
    words = nearest_words(_static_vectors(arguments), query.word, arguments.count) if arguments.static else []
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
    add_bilm_arguments(parser)
    _add_static(parser, "also compare these word vectors, such as GloVe's, which are the same in every sentence")
    options.add_flag(parser, "--json", "print the similarities as JSON instead of tables")


def run_similarity(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras.probes.similarity import word_similarities
    from elmo_tasks.extras.raw_text import raw_lines

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


def _bilm_and_tokenizer(arguments: argparse.Namespace) -> tuple[FastBiLM, Tokenizer]:
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.elmo.fast import load_frozen

    files = BiLMFiles.in_folder(arguments.bilm)
    tokenizer = bilm_tokenizer(arguments, files.options.parent)
    return load_frozen(files, device=options.chosen_device(arguments)), tokenizer
